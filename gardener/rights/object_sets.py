"""Sets of objects in a garden that belong to a Seed, or that its gardenlet uses.

Objects named after a Shoot belong to it even if they don't exist, so that a gardenlet can find out that they don't.
"""

from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import GENERATED_PREFIX, KEYS_NAMESPACE, SOURCE_PREFIX, TOKEN_PREFIX, Graph, Reference
from gardener.garden.seeds import (
    LEASE_NAMESPACE,
    bootstrap_account,
    bootstrap_binding,
    bootstrap_token_id,
    namespace_of,
)
from gardener.rights.model import Case, ObjectSet, Test, always
from kube import resources as kubernetes
from kube.objects import Key
from kube.resources import Resource

_SYSTEM, _PUBLIC = "kube-system", "gardener-system-public"

# --- by relation


def used(resource: Resource) -> ObjectSet:
    return ObjectSet(title="used by its objects", has=_used(resource))


def _used(resource: Resource) -> Test:
    return lambda case: case.graph.uses(case.seed, resource, case.key)


def owned(resource: Resource, *, lists: Test) -> ObjectSet:
    return ObjectSet(
        title="its own, by their fields",
        has=lambda case: case.graph.has(case.seed, resource, case.key),
        lists=lists,
    )


def of_shoots(resource: Resource) -> ObjectSet:
    return ObjectSet(
        title="named after its Shoots",
        has=lambda case: case.graph.is_of_shoot(case.seed, resource, case.key),
        place=_beside_shoots,
    )


def _beside_shoots(case: Case) -> bool:
    return case.graph.has_shoots_in(case.seed, case.requested.namespace)


# --- lists


def selected_by(*fields: str) -> Test:
    """A list with a field selector for the Seed."""
    return lambda case: any(case.selects(field) for field in fields)


def labeled_or_selected_by(*fields: str) -> Test:
    """A list with the label of the Seed, or with a field selector for it."""
    return lambda case: case.selects_own() or any(case.selects(field) for field in fields)


def lists_bastions(case: Case) -> bool:
    if case.selects("spec.seedName"):
        return True
    named = [each for each in case.requested.field_selector.requirements if each.key == "spec.shootRef.name"]
    return any(
        case.graph.has(case.seed, garden.SHOOTS, Key(case.requested.namespace, value))
        for each in named
        if each.operator == "In" and len(each.values) == 1
        for value in each.values
    )


# --- Seeds and their backups


def _is_seed(case: Case) -> bool:
    return case.requested.name == case.seed


def _is_child(case: Case) -> bool:
    return case.graph.has(case.seed, garden.MANAGED_SEEDS, Key(NAMESPACE, case.requested.name))


def _own_bucket(case: Case) -> bool:
    return _is_bucket(case, case.requested.name)


def _is_bucket(case: Case, name: str) -> bool:
    """Whether it is the name of a BackupBucket of the Seed; a new one is named after the uid of the Seed."""
    own, found = case.graph.seed(case.seed), case.graph.get(garden.BACKUP_BUCKETS, Key("", name))
    if found is not None:
        return case.graph.owns(case.seed, found)
    return own is not None and bool(own.uid) and own.uid == name


def _bucket_credentials(resource: Resource, *, leaving: bool) -> Test:
    def has(case: Case) -> bool:
        buckets = case.graph.buckets(case.seed, resource, case.key)
        return any(bucket.is_deleting or not leaving for bucket in buckets)

    return has


def bucket_credentials(resource: Resource) -> ObjectSet:
    return ObjectSet(title="of its BackupBuckets", has=_bucket_credentials(resource, leaving=False))


def leaving_bucket_credentials(resource: Resource) -> ObjectSet:
    return ObjectSet(
        title="of its BackupBucket while it is being deleted", has=_bucket_credentials(resource, leaving=True)
    )


def _own_entry(case: Case) -> bool:
    found = case.graph.has(case.seed, garden.BACKUP_ENTRIES, case.key)
    return found or case.graph.is_backup(case.seed, case.key)


OWN_SEED = ObjectSet(title="its Seed", has=_is_seed, place=always)
CHILDREN = ObjectSet(title="Seeds of ManagedSeeds in its Shoots", has=_is_child)
TEMPLATED_CHILDREN = ObjectSet(
    title="Seeds of ManagedSeeds with `seedTemplate` in its Shoots",
    has=lambda case: case.graph.template(case.seed, case.requested.name) is not None,
)
OWN_BUCKETS = ObjectSet(
    title="its own; not those of a former Seed of the same name",
    has=_own_bucket,
    lists=selected_by("spec.seedName"),
    place=always,
)
OWN_ENTRIES = ObjectSet(
    title="its own, or named after its Shoots",
    has=_own_entry,
    lists=labeled_or_selected_by("spec.seedName"),
    place=_beside_shoots,
)
SOURCE_ENTRIES = ObjectSet(
    title="`source-` of these",
    has=lambda case: case.requested.name.startswith(SOURCE_PREFIX) and _own_entry(case),
)


# --- namespaces


def _in_own_namespace(case: Case) -> bool:
    return case.requested.namespace == namespace_of(case.seed) and case.graph.seed(case.seed) is not None


def _used_namespace(case: Case) -> bool:
    name = case.requested.name
    return name in {NAMESPACE, namespace_of(case.seed)} or case.graph.is_in(case.seed, name)


def _used_project(case: Case) -> bool:
    found = case.graph.get(garden.PROJECTS, case.key)
    return found is not None and any(case.graph.is_in(case.seed, each.key.name) for each in found.uses)


def in_namespace(namespace: str) -> ObjectSet:
    """The object with the name of the Seed in a namespace."""
    return ObjectSet(
        title=f"`{namespace}/<seed>`",
        has=lambda case: case.requested.namespace == namespace and _is_seed(case),
        place=lambda case: case.requested.namespace == namespace,
    )


OWN_NAMESPACE = ObjectSet(
    title="in `seed-<seed>`", has=_in_own_namespace, lists=_in_own_namespace, place=_in_own_namespace
)
USED_NAMESPACES = ObjectSet(title="of its Shoots, `garden`, `seed-<seed>`", has=_used_namespace)
USED_PROJECTS = ObjectSet(title="of its Shoots", has=_used_project)
OWN_LEASE = in_namespace(LEASE_NAMESPACE)
OWN_GARDENLET = in_namespace(NAMESPACE)


# --- credentials


def _signing_keys(case: Case) -> bool:
    return case.requested.namespace == KEYS_NAMESPACE and case.graph.has_keys(case.seed, case.requested.name)


def _generated(case: Case) -> bool:
    name = case.requested.name
    return (
        _in_garden(case) and name.startswith(GENERATED_PREFIX) and _is_bucket(case, name.removeprefix(GENERATED_PREFIX))
    )


def _bootstrap_token(case: Case) -> bool:
    return is_bootstrap_token(case.seed, case.key, case.graph)


def is_bootstrap_token(seed: str, where: Key, graph: Graph) -> bool:
    """Whether a Secret is the bootstrap token of the Seed, or of one that its gardenlet installs."""
    if where.namespace != _SYSTEM or not where.name.startswith(TOKEN_PREFIX):
        return False
    own = f"{TOKEN_PREFIX}{bootstrap_token_id(Key(NAMESPACE, seed))}"
    is_own = where.name == own and not graph.is_ambiguous(Reference(kubernetes.SECRETS, where))
    return is_own or graph.uses(seed, kubernetes.SECRETS, where)


def _own_account(case: Case) -> bool:
    where = case.key
    if where == bootstrap_account(Key(NAMESPACE, case.seed)):
        return True
    return case.graph.uses(case.seed, kubernetes.SERVICE_ACCOUNTS, where)


def _own_binding(case: Case) -> bool:
    own = bootstrap_binding(bootstrap_account(Key(NAMESPACE, case.seed)))
    return case.requested.name == own or case.graph.uses(case.seed, kubernetes.CLUSTER_ROLE_BINDINGS, case.key)


def _in_garden(case: Case) -> bool:
    return case.requested.namespace == NAMESPACE


SIGNING_KEYS = ObjectSet(
    title=f"public keys of its Shoots in `{KEYS_NAMESPACE}`",
    has=_signing_keys,
    place=lambda case: case.requested.namespace == KEYS_NAMESPACE,
)
GENERATED = ObjectSet(title=f"`{GENERATED_PREFIX}<bucket>` of its BackupBuckets", has=_generated, place=_in_garden)
BOOTSTRAP_TOKENS = ObjectSet(
    title="bootstrap tokens of its Seed, and of ManagedSeeds in its Shoots",
    has=_bootstrap_token,
    place=lambda case: case.requested.namespace == _SYSTEM,
)
CHILD_SECRETS = ObjectSet(
    title="credentials of ManagedSeeds in its Shoots",
    has=lambda case: case.graph.prepares(case.seed, kubernetes.SECRETS, case.key),
    place=_in_garden,
)
BOOTSTRAP_ACCOUNTS = ObjectSet(
    title="bootstrap accounts of its Seed, and of ManagedSeeds in its Shoots", has=_own_account, place=_in_garden
)
BOOTSTRAP_BINDINGS = ObjectSet(
    title="of these bootstrap accounts",
    has=_own_binding,
    place=always,
)


# --- ConfigMaps


PUBLIC_CONFIG_MAPS = ObjectSet(
    title=f"`{_SYSTEM}/cluster-identity`, those in `{_PUBLIC}`, `kube-root-ca.crt` in `seed-<seed>`",
    has=lambda case: (
        case.key == Key(_SYSTEM, "cluster-identity")
        or case.requested.namespace == _PUBLIC
        or (case.requested.name == "kube-root-ca.crt" and _in_own_namespace(case))
    ),
)
