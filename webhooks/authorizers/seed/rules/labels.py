"""Labels through which programs of the garden act on objects that a gardenlet may create.

Secrets in `garden` with a role are domains and credentials that all Seeds get. ServiceAccounts of Seeds get the rights
of the extension that a label names. Operators select a Seed by its labels for extensions and Shoots: its gardenlet
chooses them when it registers the Seed, and afterwards only others change those.
"""

from collections.abc import Iterator

from gardener import keys
from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import (
    CONFIG_MAPS_OF_SHOOT,
    INTERNAL_SECRETS_OF_SHOOT,
    KEYS_NAMESPACE,
    SECRETS_OF_SHOOT,
    Graph,
)
from gardener.rights.metadata import derived
from kube.objects import Key, Object, annotations, labels, mappings, metadata
from webhooks.authorizers.seed.rules.common import Objection, Write, node_of

ROLES = frozenset(
    {*(each.removesuffix(".old") for each in SECRETS_OF_SHOOT), *CONFIG_MAPS_OF_SHOOT, *INTERNAL_SECRETS_OF_SHOOT}
)
"""Roles of objects that gardenlets publish for a Shoot in its namespace."""
_OF_ISSUERS = frozenset({"shoot-service-account-issuer"})
"""Roles of Secrets published for the garden's issuer; in `garden` they are a setting for all Seeds."""


def no_foreign_role(write: Write, graph: Graph) -> Iterator[Objection]:  # noqa: ARG001 - as the other rules
    """Allow only roles of objects that belong to a Shoot."""
    role = labels(write.new).get(keys.ROLE, "")
    permitted = _OF_ISSUERS if write.key.namespace == KEYS_NAMESPACE else ROLES
    if role and role not in permitted and role != labels(write.old).get(keys.ROLE, ""):
        label = f"{keys.ROLE}={role}"
        yield Objection(
            f'seed "{write.seed}" may not set label {label}: programs of the garden use it; have an operator set it'
        )


def no_foreign_extension(write: Write, graph: Graph) -> Iterator[Objection]:
    """Allow only the name of an extension that the Seed has."""
    name = labels(write.new).get(keys.CONTROLLER_REGISTRATION_NAME, "")
    if name and not graph.uses(write.seed, garden.CONTROLLER_REGISTRATIONS, Key("", name)):
        label = f"{keys.CONTROLLER_REGISTRATION_NAME}={name}"
        yield Objection(f'seed "{write.seed}" may not set label {label}: the extension is not installed on it')


def keeps_marks(write: Write, graph: Graph) -> Iterator[Objection]:  # noqa: ARG001 - as the other rules
    """Refuse changes of cordons and owners of the own Seed: with an owner, it could be deleted and registered again."""
    if write.key.name != write.seed or not write.new:
        return
    before, now = annotations(write.old), annotations(write.new)
    for name in (keys.CORDONED, keys.CORDONED_BY) if write.old else ():
        if before.get(name) != now.get(name):
            yield Objection(f'seed "{write.seed}" may not change annotation "{name}"; have an operator change it')
    if _owners(write.old) != _owners(write.new):
        yield Objection(f'seed "{write.seed}" may not change metadata.ownerReferences; have an operator change them')


def _owners(seed: Object) -> list[Object]:
    return mappings(metadata(seed).get("ownerReferences"))


def keeps_selected(write: Write, graph: Graph) -> Iterator[Objection]:
    """Allow labels by which operators select the Seed only with values that they have entered; a new Seed has any."""
    name = write.key.name
    managed_seed = graph.get(garden.MANAGED_SEEDS, Key(NAMESPACE, name))
    if not write.new or (write.resource == garden.SEEDS and not write.old and managed_seed is None):
        return
    nodes = {each: graph.get(each, Key(where, name)) for each, where in _ENTERED.items() if each != write.resource}
    entered = {each: dict(node.labels) for each, node in nodes.items() if node is not None}
    before, now = dict(node_of(write, write.old).labels), dict(node_of(write, write.new).labels)
    for label in sorted(before.keys() | now.keys()):
        value = now.get(label)
        # Gardenlets write their own Gardenlet object: a label missing there was not removed by others.
        counts = [each for each in entered if value is not None or each == garden.MANAGED_SEEDS]
        if before.get(label) == value or derived(label) or any(entered[each].get(label) == value for each in counts):
            continue
        if graph.are_selected_by(label):
            yield Objection(
                f'seed "{write.seed}" may not change label "{label}" of a Seed, which operators select by; have an '
                "operator run "
                f"`kubectl label seed {name} --overwrite {label}{'-' if value is None else f'={value}'}`"
            )


_ENTERED = {garden.SEEDS: "", garden.MANAGED_SEEDS: NAMESPACE, garden.GARDENLETS: NAMESPACE}
