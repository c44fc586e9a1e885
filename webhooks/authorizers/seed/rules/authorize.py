"""What a gardenlet may do in the garden: what its flows need of what belongs to its Seed, and nothing else.

`RIGHTS` says of each kind which verbs there are, and for which objects. Who is no gardenlet, and what is about another
kind, is left to the next authorizer. So is reading what everybody may read.

A request to create does not name the object: then the place counts, and the admission (`restriction` beside this
module) sees the name. What is named after a Shoot belongs to it whether it exists or not, so that a gardenlet learns
that it does not exist.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import (
    GENERATED_PREFIX,
    KEYS_NAMESPACE,
    SOURCE_PREFIX,
    TOKEN_PREFIX,
    Graph,
)
from gardener.garden.seeds import (
    LEASE_NAMESPACE,
    bootstrap_account,
    bootstrap_binding,
    bootstrap_token_id,
    namespace_of,
    seed_of_user,
)
from gardener.keys import SEED_LABEL_PREFIX
from kube import resources as kubernetes
from kube.objects import Key
from kube.resources import Resource
from webhooks.authorizers.attributes import ALLOW, NO_OPINION, Attributes, Decision, deny

_SYSTEM, _PUBLIC = "kube-system", "gardener-system-public"
_READ = frozenset({"get", "list", "watch"})
_CHANGE = frozenset({"update", "patch"})
_WRITE = frozenset({"create", "update", "patch", "delete"})
_STATUS = frozenset({"status"})
_FOR_GARDENLETS = "seedclient"
"""The subresource that stands for approval as the certificate of a gardenlet; no object is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request of the gardenlet of a Seed."""

    seed: str
    asked: Attributes
    graph: Graph
    with_selectors: bool = True

    @property
    def key(self) -> Key:
        return Key(self.asked.namespace, self.asked.name)

    def selects(self, field: str, value: str = "") -> bool:
        """Whether a list is limited to objects with this field; by default to that of the Seed."""
        return not self.with_selectors or self.asked.field_selector.demands(field, value or self.seed)

    def selects_own(self) -> bool:
        """Whether a list is limited to objects with the label of the Seed."""
        return self.with_selectors and self.asked.label_selector.demands(f"{SEED_LABEL_PREFIX}{self.seed}", "true")


Test = Callable[[Case], bool]


def _never(_: Case) -> bool:
    return False


def _always(_: Case) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What gardenlets may do with objects of a kind.

    Attributes:
        writes: the verbs for what is `own`, beside reading it.
        changes: the verbs for what is only `used`, beside reading it.
        creates: where something may be created, as long as its name is not known.
        lists: whether a list is limited to what the Seed may see.
        subresources: for which the same holds.
        actions: further subresources, of which something is created for what is own or used.
        is_public: whether others may let everybody read it.
    """

    own: Test = _never
    used: Test = _never
    writes: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    creates: Test = _never
    lists: Test = _never
    subresources: frozenset[str] = frozenset()
    actions: frozenset[str] = frozenset()
    is_public: bool = False


def authorize(asked: Attributes, graph: Graph, *, with_selectors: bool = True) -> Decision:
    seed = seed_of_user(asked.user, asked.groups)
    rights = RIGHTS.get((asked.group, asked.resource)) if seed and asked.is_resource_request else None
    if rights is None:
        return NO_OPINION
    case = Case(seed=seed, asked=asked, graph=graph, with_selectors=with_selectors)
    if _permits(rights, case):
        return ALLOW
    if rights.is_public and asked.verb in _READ and not asked.subresource:
        return NO_OPINION
    return deny(_reason(case))


def _permits(rights: Rights, case: Case) -> bool:
    asked = case.asked
    if asked.subresource in rights.actions:
        return asked.verb == "create" and (rights.own(case) or rights.used(case))
    if asked.subresource and asked.subresource not in rights.subresources:
        return False
    if asked.verb in _READ:
        if asked.name:
            return rights.used(case) or rights.own(case)
        return rights.lists(case)
    if asked.verb == "create" and not asked.name:
        return "create" in rights.writes and not asked.subresource and rights.creates(case)
    if not asked.name:
        return False
    return (asked.verb in rights.writes and rights.own(case)) or (asked.verb in rights.changes and rights.used(case))


def _reason(case: Case) -> str:
    asked = case.asked
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    what = f'{resource} "{case.key}"' if asked.name else resource
    if not asked.name and asked.namespace:
        what += f' in namespace "{asked.namespace}"'
    return (
        f'{what} does not belong to seed "{case.seed}", or its gardenlet does not need to {asked.verb or "access"} it'
    )


# --- whether an object belongs to the Seed


def _of_kind(resource: Resource) -> Test:
    return lambda case: case.graph.has(case.seed, resource, case.key)


def _used(resource: Resource) -> Test:
    return lambda case: case.graph.uses(case.seed, resource, case.key)


def _of_shoot(resource: Resource) -> Test:
    return lambda case: case.graph.is_of_shoot(case.seed, resource, case.key)


def _is_seed(case: Case) -> bool:
    return case.asked.name == case.seed


def _beside_shoots(case: Case) -> bool:
    return case.graph.has_shoots_in(case.seed, case.asked.namespace)


def _in_own_namespace(case: Case) -> bool:
    return case.asked.namespace == namespace_of(case.seed)


def _own_seed(case: Case) -> bool:
    """Its own; those of ManagedSeeds on it, to delete them, or to make them from a template."""
    name, asked = case.asked.name, case.asked
    if _is_seed(case):
        return True
    if asked.verb == "delete":
        return case.graph.has(case.seed, garden.MANAGED_SEEDS, Key(NAMESPACE, name))
    return not asked.subresource and case.graph.template(case.seed, name) is not None


def _own_bucket(case: Case) -> bool:
    """It is named after the uid of the Seed."""
    own = case.graph.get(garden.SEEDS, Key("", case.seed))
    is_its = own is not None and bool(own.uid) and own.uid == case.asked.name
    found = case.graph.get(garden.BACKUP_BUCKETS, case.key)
    return is_its if found is None else case.graph.owns(case.seed, found)


def _own_entry(case: Case) -> bool:
    found = case.graph.has(case.seed, garden.BACKUP_ENTRIES, case.key)
    is_own = found or case.graph.is_backup(case.seed, case.key)
    return is_own and (case.asked.verb != "delete" or case.asked.name.startswith(SOURCE_PREFIX))


def _lists_bastions(case: Case) -> bool:
    if case.selects("spec.seedName"):
        return True
    named = [each for each in case.asked.field_selector.requirements if each.key == "spec.shootRef.name"]
    return any(
        case.graph.has(case.seed, garden.SHOOTS, Key(case.asked.namespace, value))
        for each in named
        if each.operator == "In" and len(each.values) == 1
        for value in each.values
    )


def _lists_shoots(case: Case) -> bool:
    return case.selects_own() or case.selects("spec.seedName") or case.selects("status.seedName")


def _lists_entries(case: Case) -> bool:
    return case.selects_own() or case.selects("spec.seedName")


# --- credentials


def _own_secret(case: Case) -> bool:
    where, graph, seed = case.key, case.graph, case.seed
    if _in_own_namespace(case) or graph.is_of_shoot(seed, kubernetes.SECRETS, where):
        return True
    if where.namespace == KEYS_NAMESPACE:
        return graph.has_keys(seed, where.name)
    if where.namespace == NAMESPACE and where.name.startswith(GENERATED_PREFIX):
        bucket = Key("", where.name.removeprefix(GENERATED_PREFIX))
        return graph.has(seed, garden.BACKUP_BUCKETS, bucket) or graph.uses(seed, kubernetes.SECRETS, where)
    return is_bootstrap_token(seed, where, graph) or graph.prepares(seed, kubernetes.SECRETS, where)


def is_bootstrap_token(seed: str, where: Key, graph: Graph) -> bool:
    """Whether a Secret is the bootstrap token of the Seed, or of one that its gardenlet installs."""
    if where.namespace != _SYSTEM or not where.name.startswith(TOKEN_PREFIX):
        return False
    own = {bootstrap_token_id(Key(namespace, seed)) for namespace in ("", NAMESPACE)}
    return where.name.removeprefix(TOKEN_PREFIX) in own or graph.uses(seed, kubernetes.SECRETS, where)


def _places_for_secrets(case: Case) -> bool:
    return (
        _in_own_namespace(case) or case.asked.namespace in {NAMESPACE, _SYSTEM, KEYS_NAMESPACE} or _beside_shoots(case)
    )


def _used_secret(case: Case) -> bool:
    """A list that names one object is about this one alone."""
    return case.graph.uses(case.seed, kubernetes.SECRETS, case.key)


def _read_config_map(case: Case) -> bool:
    where = case.key
    if _in_own_namespace(case):
        return where.name == "kube-root-ca.crt"
    if where == Key(_SYSTEM, "cluster-identity") or where.namespace == _PUBLIC:
        return case.asked.verb in _READ
    return case.graph.uses(case.seed, kubernetes.CONFIG_MAPS, where)


def _own_account(case: Case) -> bool:
    where = case.key
    if _in_own_namespace(case) or where == bootstrap_account(Key(NAMESPACE, case.seed)):
        return True
    return case.graph.uses(case.seed, kubernetes.SERVICE_ACCOUNTS, where)


def _own_binding(case: Case) -> bool:
    own = bootstrap_binding(bootstrap_account(Key(NAMESPACE, case.seed)))
    return case.asked.name == own or case.graph.uses(case.seed, kubernetes.CLUSTER_ROLE_BINDINGS, case.key)


# --- what Shoots use


def _used_namespace(case: Case) -> bool:
    name = case.asked.name
    return name in {NAMESPACE, namespace_of(case.seed)} or case.graph.is_in(case.seed, name)


def _used_project(case: Case) -> bool:
    found = case.graph.get(garden.PROJECTS, case.key)
    return found is not None and any(case.graph.is_in(case.seed, each.key.name) for each in found.uses)


def _own_lease(case: Case) -> bool:
    return case.asked.namespace == LEASE_NAMESPACE and _is_seed(case)


def _own_gardenlet(case: Case) -> bool:
    return case.asked.namespace == NAMESPACE and _is_seed(case)


def _in_lease_namespace(case: Case) -> bool:
    return case.asked.namespace == LEASE_NAMESPACE


def _in_garden(case: Case) -> bool:
    return case.asked.namespace == NAMESPACE


_EVENTS = Rights(own=_always, writes=frozenset({"create", "patch"}), creates=_always)


def _reading(resource: Resource, *, is_public: bool = False) -> Rights:
    return Rights(used=_used(resource), is_public=is_public)


_READABLE = Rights(used=_always, lists=_always)

RIGHTS: dict[tuple[str, str], Rights] = {
    **{
        (resource.group, resource.plural): rights
        for resource, rights in {
            garden.SEEDS: Rights(
                own=_own_seed, used=_always, writes=_WRITE, creates=_always, lists=_always, subresources=_STATUS
            ),
            garden.BACKUP_BUCKETS: Rights(
                own=_own_bucket,
                used=_used(garden.BACKUP_BUCKETS),
                writes=_WRITE,
                creates=_always,
                lists=lambda case: case.selects("spec.seedName"),
                subresources=_STATUS,
            ),
            garden.BACKUP_ENTRIES: Rights(
                own=_own_entry, writes=_WRITE, creates=_beside_shoots, lists=_lists_entries, subresources=_STATUS
            ),
            garden.BASTIONS: Rights(
                own=_of_kind(garden.BASTIONS),
                writes=_CHANGE | {"delete"},
                lists=_lists_bastions,
                subresources=_STATUS,
            ),
            garden.SHOOTS: Rights(
                own=_of_kind(garden.SHOOTS), writes=_CHANGE, lists=_lists_shoots, subresources=_STATUS
            ),
            garden.CONTROLLER_INSTALLATIONS: Rights(
                own=_of_kind(garden.CONTROLLER_INSTALLATIONS),
                writes=_CHANGE,
                lists=lambda case: case.selects("spec.seedRef.name"),
                subresources=_STATUS,
            ),
            garden.MANAGED_SEEDS: Rights(
                own=_of_kind(garden.MANAGED_SEEDS), used=_always, writes=_CHANGE, lists=_always, subresources=_STATUS
            ),
            garden.GARDENLETS: Rights(
                own=_own_gardenlet, writes=_CHANGE | {"create"}, creates=_in_garden, subresources=_STATUS
            ),
            garden.SHOOT_STATES: Rights(own=_of_shoot(garden.SHOOT_STATES), writes=_WRITE, creates=_beside_shoots),
            garden.INTERNAL_SECRETS: Rights(
                own=_of_shoot(garden.INTERNAL_SECRETS), writes=_WRITE, creates=_beside_shoots
            ),
            kubernetes.SECRETS: Rights(
                own=_own_secret,
                used=_used_secret,
                writes=_WRITE,
                changes=_CHANGE,
                creates=_places_for_secrets,
                lists=_in_own_namespace,
            ),
            kubernetes.CONFIG_MAPS: Rights(
                own=_of_shoot(kubernetes.CONFIG_MAPS),
                used=_read_config_map,
                writes=_WRITE,
                changes=_CHANGE,
                creates=_beside_shoots,
            ),
            kubernetes.SERVICE_ACCOUNTS: Rights(
                own=_own_account,
                writes=_WRITE,
                creates=lambda case: _in_own_namespace(case) or _in_garden(case),
                lists=_in_own_namespace,
                actions=frozenset({"token"}),
            ),
            garden.CLOUD_PROFILES: _reading(garden.CLOUD_PROFILES, is_public=True),
            garden.EXPOSURE_CLASSES: _reading(garden.EXPOSURE_CLASSES, is_public=True),
            garden.NAMESPACED_CLOUD_PROFILES: _reading(garden.NAMESPACED_CLOUD_PROFILES),
            garden.SECRET_BINDINGS: _reading(garden.SECRET_BINDINGS),
            garden.CREDENTIALS_BINDINGS: _reading(garden.CREDENTIALS_BINDINGS),
            garden.CONTROLLER_DEPLOYMENTS: _reading(garden.CONTROLLER_DEPLOYMENTS),
            garden.WORKLOAD_IDENTITIES: Rights(used=_used(garden.WORKLOAD_IDENTITIES), actions=frozenset({"token"})),
            garden.PROJECTS: Rights(used=_used_project),
            kubernetes.NAMESPACES: Rights(used=_used_namespace),
            garden.CONTROLLER_REGISTRATIONS: _READABLE,
            kubernetes.LEASES: Rights(own=_own_lease, writes=_CHANGE | {"create"}, creates=_in_lease_namespace),
            kubernetes.CERTIFICATE_SIGNING_REQUESTS: Rights(
                own=_of_kind(kubernetes.CERTIFICATE_SIGNING_REQUESTS),
                used=lambda case: case.asked.subresource == _FOR_GARDENLETS,
                writes=frozenset({"create"}),
                creates=_always,
                actions=frozenset({_FOR_GARDENLETS}),
            ),
            kubernetes.CLUSTER_ROLE_BINDINGS: Rights(own=_own_binding, writes=_WRITE, creates=_always),
            kubernetes.EVENTS: _EVENTS,
        }.items()
    },
    ("events.k8s.io", "events"): _EVENTS,
}
