"""Reasons to refuse a write of a gardenlet: the object does not, or would not, belong to its Seed.

`authorize` sees no objects, and not even the name of a created one. Here both are known. The table of rights lists the
objects that a gardenlet may write; the other modules have rules about their content.
"""

from collections.abc import Iterator

from gardener.api import garden
from gardener.garden.seed_graph import KINDS, Graph
from gardener.rights import object_sets as sets
from gardener.rights.gardenlet import TABLE
from gardener.rights.model import Right
from kube import resources as kubernetes
from kube.objects import controller_of, text
from kube.resources import Resource
from webhooks.authorizers.seed.rules import children, labels, uses
from webhooks.authorizers.seed.rules.common import Objection, Rule, Write, case_of, uses_no_more
from webhooks.authorizers.seed.rules.identity import identity_of_shoot

BY_THEMSELVES = frozenset(
    {
        garden.BACKUP_BUCKETS,
        garden.BACKUP_ENTRIES,
        garden.BASTIONS,
        garden.CONTROLLER_INSTALLATIONS,
        garden.SHOOTS,
    }
)
"""Kinds whose objects name the Seed to which they belong."""


def objection(write: Write, graph: Graph) -> Objection | None:
    """Return the first objection; None if the write is permitted."""
    if not _belongs(write, graph):
        return Objection(f'object does not belong to seed "{write.seed}"')
    for rule in (*_RULES.get(write.resource, ()), _within_limits):
        for found in rule(write, graph):
            return found
    return None


def _belongs(write: Write, graph: Graph) -> bool:
    kind = KINDS.get(write.resource)
    if not any(True for _ in TABLE.about(write.resource, write.verb, write.subresource)):
        return False
    if write.resource in BY_THEMSELVES and kind is not None:
        before = kind.node(write.old) if write.old else None
        is_backup = write.resource == garden.BACKUP_ENTRIES and graph.is_backup(write.seed, write.key)
        if before is None:
            return write.seed in kind.node(write.new).seeds and TABLE.permits(case_of(write, graph))
        return graph.owns(write.seed, before) or is_backup
    return TABLE.permits(case_of(write, graph))


def _within_limits(write: Write, graph: Graph) -> Iterator[Objection]:
    """Check that at least one row of the table permits the changes."""
    rights = list(_rights(write, graph))
    if not rights:
        yield Objection(f"secret {write.key} is not owned by the ManagedSeed that uses it; have an operator change it")
    if not (write.old and write.new):
        return
    exceeded: list[str] = []
    for right in rights:
        exceeded = [] if right.limits is None else list(right.limits.exceeded(write.old, write.new))
        if not exceeded:
            return
    for each in exceeded:
        yield Objection(f'seed "{write.seed}" may not change {each}; have an operator change it')


def _rights(write: Write, graph: Graph) -> Iterator[Right]:
    """Rows that permit the write, if the object belongs to the Seed by itself or by the graph."""
    if write.resource in BY_THEMSELVES:
        yield from TABLE.about(write.resource, write.verb, write.subresource)
        return
    for right in TABLE.permitting(case_of(write, graph)):
        if right.objects is not sets.CHILD_SECRETS or _is_made_for_child(write, graph):
            yield right


def _is_made_for_child(write: Write, graph: Graph) -> bool:
    """Whether the gardenlet made these credentials for a ManagedSeed, which is then their controller."""
    made_for = text((controller_of(write.old or write.new) or {}).get("uid"))
    children_of = graph.children(write.seed, write.resource, write.key)
    return bool(made_for) and any(made_for == child.uid for child in children_of)


_RULES: dict[Resource, tuple[Rule, ...]] = {
    garden.BACKUP_BUCKETS: (uses.seed_stays, uses.credentials_of_bucket),
    garden.BACKUP_ENTRIES: (uses.seed_stays, uses.buckets),
    garden.BASTIONS: (uses.seed_stays,),
    garden.CONTROLLER_INSTALLATIONS: (uses.seed_stays, uses_no_more),
    garden.GARDENLETS: (uses.credentials_of_gardenlet, labels.keeps_selected),
    garden.MANAGED_SEEDS: (children.managed_seed_stays, labels.keeps_selected),
    garden.SEEDS: (children.child_is_leaving, uses.credentials_of_seed, labels.keeps_marks, labels.keeps_selected),
    garden.SHOOTS: (uses.seed_stays, uses_no_more, identity_of_shoot),
    garden.INTERNAL_SECRETS: (labels.no_foreign_role,),
    kubernetes.CONFIG_MAPS: (labels.no_foreign_role, uses.confirms_nothing),
    kubernetes.SECRETS: (
        children.no_account_token,
        children.token,
        labels.no_foreign_role,
        uses.confirms_nothing,
    ),
    kubernetes.SERVICE_ACCOUNTS: (children.account, labels.no_foreign_extension),
    kubernetes.CLUSTER_ROLE_BINDINGS: (children.binding,),
}
