"""What in a garden belongs to which Seed, and what its gardenlet may use because of it: a graph.

A `Node` is what is kept of an object: the Seeds that it belongs to by its own fields, and what it uses. A gardenlet may
use an object that belongs to its Seed, and whatever such an object uses, directly or through others:

    Seed                     credentials of backup and DNS, its BackupBucket
    BackupBucket             its credentials, those that an extension generated
    BackupEntry              its BackupBucket, which may be that of another Seed
    Shoot                    bindings, profile, exposure class, namespace, Secrets and ConfigMaps that it names
    SecretBinding, CredentialsBinding   Secret or WorkloadIdentity
    NamespacedCloudProfile   its parent
    ControllerInstallation   its ControllerDeployment
    ManagedSeed, of a Shoot  backup Secret and bootstrap credentials of the gardenlet that is installed in the Shoot; or
                             its Seed, if it has a template

What is named after a Shoot is not in the graph: rights to it follow from the Shoot, before it exists and after it went.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from gardener import keys
from gardener.api import garden
from gardener.garden import users
from gardener.garden.domains import NAMESPACE
from gardener.garden.managed_seeds import seed_template_path
from gardener.garden.seeds import bootstrap_account, bootstrap_binding, bootstrap_token_id
from gardener.garden.shoot_states import shoot_of_part
from gardener.garden.shoots import references, seeds_of
from kube import resources as kubernetes
from kube.objects import Key, Object, annotations, is_deleting, key, mapping, spec, text, uid
from kube.paths import at, mapping_at, mappings_at
from kube.resources import Resource

SOURCE_PREFIX = "source-"
"""Of the name of a second BackupEntry of a Shoot, for backups that are copied from its former bucket."""
GENERATED_PREFIX = "generated-bucket-"
"""Of the name of a Secret in `garden` with credentials of a BackupBucket, which follows."""
KEYS_NAMESPACE = "gardener-system-shoot-issuer"
"""Where public keys of Shoots are published."""
TOKEN_PREFIX = "bootstrap-token-"
"""Of the names of Secrets in `kube-system`."""

SECRETS_OF_SHOOT = (
    "ca-cluster",
    "ca-kubelet",
    "kubeconfig",
    "monitoring",
    "ssh-keypair",
    "ssh-keypair.old",
)
"""After the name of the Shoot and a dot: Secrets that its gardenlet publishes in its namespace."""
CONFIG_MAPS_OF_SHOOT = ("ca-cluster", "ca-kubelet")
INTERNAL_SECRETS_OF_SHOOT = ("ca-client",)
NAMES_OF_SHOOT = {
    kubernetes.SECRETS: SECRETS_OF_SHOOT,
    kubernetes.CONFIG_MAPS: CONFIG_MAPS_OF_SHOOT,
    garden.INTERNAL_SECRETS: INTERNAL_SECRETS_OF_SHOOT,
}


class Reference(NamedTuple):
    resource: Resource
    key: Key


class Node(NamedTuple):
    key: Key
    seeds: tuple[str, ...] = ()
    """Those that it belongs to."""
    uses: tuple[Reference, ...] = ()
    shoot: Key | None = None
    """It belongs to the Seeds of this Shoot, instead of `seeds`."""
    uid: str = ""
    """Of a Shoot that of its cluster, which names its signing keys."""
    backup: str = ""
    """Name of the BackupEntry of a Shoot; empty: it has no cluster yet."""
    is_deleting: bool = False
    renews: bool = False
    """Whether new credentials are asked for the gardenlet of a ManagedSeed."""
    expires: str = ""
    """When the certificate of the gardenlet of a Seed expires; empty: it has none yet."""
    template: tuple[Reference, ...] | None = None
    """What the Seed of a ManagedSeed may use; None: it is not made from a template."""


# --- nodes


def of_shoot(shoot: Object) -> Node:
    where = key(shoot)
    status = mapping(shoot.get("status"))
    technical_id, cluster_uid = text(status.get("technicalID")), text(status.get("uid"))
    named = (Reference(resource, Key(where.namespace, name)) for resource, name in references(shoot))
    uses = (
        *named,
        *_all(garden.CLOUD_PROFILES, users.cloud_profiles(shoot)),
        *_all(garden.NAMESPACED_CLOUD_PROFILES, users.namespaced_cloud_profiles(shoot)),
        *_all(garden.SECRET_BINDINGS, users.secret_bindings(shoot)),
        *_all(garden.CREDENTIALS_BINDINGS, users.credentials_bindings(shoot)),
        *_all(garden.EXPOSURE_CLASSES, users.exposure_classes(shoot)),
        Reference(kubernetes.NAMESPACES, Key("", where.namespace)),
    )
    backup = f"{technical_id}--{cluster_uid}" if technical_id and cluster_uid else ""
    return Node(where, tuple(seeds_of(shoot)), uses, uid=cluster_uid, backup=backup)


def of_seed(seed: Object) -> Node:
    where = key(seed)
    uses = (
        *_named(spec(seed)),
        Reference(garden.BACKUP_BUCKETS, Key("", uid(seed))),
        Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{uid(seed)}")),
    )
    expires = text(at(seed, "status", "clientCertificateExpirationTimestamp"))
    return Node(where, (where.name,), uses, uid=uid(seed), expires=expires)


def _named(seed_spec: Object) -> Iterator[Reference]:
    """Credentials, and what extensions get."""
    yield from _credentials(mapping(seed_spec.get("backup")))
    yield from _credentials(mapping_at(seed_spec, "dns", "provider"))
    yield from _credentials(mapping_at(seed_spec, "dns", "internal"))
    for domain in mappings_at(seed_spec, "dns", "defaults"):
        yield from _credentials(domain)
    yield from _resources(seed_spec)


def of_backup_bucket(bucket: Object) -> Node:
    where = key(bucket)
    uses = (
        *_credentials(spec(bucket)),
        *_credentials({"secretRef": at(bucket, "status", "generatedSecretRef")}),
        Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{where.name}")),
    )
    return Node(where, _seeds(spec(bucket).get("seedName")), uses)


def of_backup_entry(entry: Object) -> Node:
    return Node(key(entry), tuple(seeds_of(entry)), tuple(_all(garden.BACKUP_BUCKETS, users.backup_buckets(entry))))


def of_bastion(bastion: Object) -> Node:
    return Node(key(bastion), _seeds(spec(bastion).get("seedName")))


def of_binding(binding: Object) -> Node:
    found = (
        *_all(kubernetes.SECRETS, users.secrets(binding)),
        *_all(garden.WORKLOAD_IDENTITIES, users.workload_identities(binding)),
    )
    return Node(key(binding), uses=found)


def of_namespaced_cloud_profile(profile: Object) -> Node:
    return Node(key(profile), uses=tuple(_all(garden.CLOUD_PROFILES, users.parents(profile))))


def of_controller_installation(installation: Object) -> Node:
    deployment = text(at(installation, "spec", "deploymentRef", "name"))
    uses = (Reference(garden.CONTROLLER_DEPLOYMENTS, Key("", deployment)),) if deployment else ()
    return Node(key(installation), _seeds(at(installation, "spec", "seedRef", "name")), uses)


def of_managed_seed(managed_seed: Object) -> Node:
    where = key(managed_seed)
    wanted = spec(managed_seed)
    seed_spec = mapping_at(wanted, *seed_template_path(wanted), "spec")
    account = bootstrap_account(where)
    uses = (
        *_credentials(mapping(seed_spec.get("backup"))),
        Reference(kubernetes.SECRETS, Key("kube-system", f"{TOKEN_PREFIX}{bootstrap_token_id(where)}")),
        Reference(kubernetes.SERVICE_ACCOUNTS, account),
        Reference(kubernetes.CLUSTER_ROLE_BINDINGS, Key("", bootstrap_binding(account))),
    )
    shoot = next(iter(users.shoots(managed_seed)), Key(where.namespace, ""))
    renews = annotations(managed_seed).get(keys.OPERATION) == keys.OPERATION_RENEW_KUBECONFIG
    return Node(
        where,
        uses=uses,
        shoot=shoot,
        is_deleting=is_deleting(managed_seed),
        renews=renews,
        template=tuple(_named(seed_spec)) if wanted.get("seedTemplate") is not None else None,
    )


def of_project(project: Object) -> Node:
    found = (Reference(kubernetes.NAMESPACES, each) for each in users.namespaces(project))
    return Node(key(project), uses=tuple(found))


def _all(resource: Resource, keys: Iterable[Key]) -> Iterator[Reference]:
    return (Reference(resource, each) for each in keys)


def _seeds(name: object) -> tuple[str, ...]:
    return (found,) if (found := text(name)) else ()


def _credentials(holder: Object) -> Iterator[Reference]:
    for name in ("secretRef", "credentialsRef"):
        reference = mapping(holder.get(name))
        if named := text(reference.get("name")):
            is_identity = reference.get("kind") == garden.WORKLOAD_IDENTITIES.kind
            resource = garden.WORKLOAD_IDENTITIES if is_identity else kubernetes.SECRETS
            yield Reference(resource, Key(text(reference.get("namespace")) or NAMESPACE, named))


def _resources(seed_spec: Object) -> Iterator[Reference]:
    """What a Seed names for extensions, in `garden`."""
    for each in mappings_at(seed_spec, "resources"):
        reference = mapping(each.get("resourceRef"))
        for resource in (kubernetes.SECRETS, kubernetes.CONFIG_MAPS):
            if reference.get("kind") == resource.kind and (name := text(reference.get("name"))):
                yield Reference(resource, Key(NAMESPACE, name))


# --- the graph

USES, PLACES = "uses", "places"


def used(node: Node) -> Iterator[tuple[str, Reference]]:
    """An index: each Seed with what it uses by this node; without a Seed if the node belongs to none by itself."""
    return ((seed, reference) for reference in node.uses for seed in node.seeds or ("",))


def used_by_others(node: Node) -> Iterator[tuple[str, Reference]]:
    """The same, for what other nodes use: whoever uses them, uses that."""
    yield from used(node)
    if node.seeds:
        yield from (("", reference) for reference in node.uses)


def places(node: Node) -> Iterator[tuple[str, str]]:
    """An index: Seeds and namespaces in which they have something."""
    return ((seed, node.key.namespace) for seed in node.seeds)


class Nodes(Protocol):
    """The nodes of a kind, such as those of a `kube.runtime.cache.Store`."""

    def get(self, wanted: Key, /) -> Node | None: ...

    def by_index(self, name: str, value: Hashable, /) -> Iterator[tuple[Key, Node]]: ...

    def count(self, name: str, value: Hashable, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """How objects of a kind become nodes, and the indexes of these."""

    node: Callable[[Object], Node]
    indexes: Mapping[str, Callable[[Node], Iterable[Hashable]]] = field(default_factory=dict)


_USES = {USES: used}
KINDS: dict[Resource, Kind] = {
    garden.BACKUP_BUCKETS: Kind(of_backup_bucket, {USES: used_by_others}),
    garden.BACKUP_ENTRIES: Kind(of_backup_entry, {USES: used, PLACES: places}),
    garden.BASTIONS: Kind(of_bastion),
    garden.CONTROLLER_INSTALLATIONS: Kind(of_controller_installation, _USES),
    garden.CREDENTIALS_BINDINGS: Kind(of_binding, _USES),
    garden.MANAGED_SEEDS: Kind(of_managed_seed, _USES),
    garden.NAMESPACED_CLOUD_PROFILES: Kind(of_namespaced_cloud_profile, _USES),
    garden.PROJECTS: Kind(of_project),
    garden.SECRET_BINDINGS: Kind(of_binding, _USES),
    garden.SEEDS: Kind(of_seed, {USES: used_by_others}),
    garden.SHOOTS: Kind(of_shoot, {USES: used, PLACES: places}),
}
"""All kinds of which something is kept. CertificateSigningRequests are added by who can read what they ask for."""


class Graph:
    def __init__(self, nodes: Mapping[Resource, Nodes]) -> None:
        self._nodes = nodes
        self._users = [(resource, found) for resource, found in nodes.items() if resource in _USERS]

    def get(self, resource: Resource, wanted: Key) -> Node | None:
        return self._nodes[resource].get(wanted)

    def has(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether the object exists and belongs to the Seed."""
        found = self.get(resource, wanted)
        return found is not None and self.owns(seed, found)

    def owns(self, seed: str, node: Node) -> bool:
        if node.shoot is not None:
            return self.has(seed, garden.SHOOTS, node.shoot)
        return seed in node.seeds

    def uses(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether something that belongs to the Seed uses the object, be it through others."""
        return self._uses(seed, Reference(resource, wanted))

    def _uses(self, seed: str, wanted: Reference) -> bool:
        if any(nodes.count(USES, (seed, wanted)) for _, nodes in self._users):
            return True
        for resource, nodes in self._users:
            for _, node in nodes.by_index(USES, ("", wanted)):
                # Something else is between: a ManagedSeed and its Shoot, or one that others use.
                if self.owns(seed, node) or self._uses(seed, Reference(resource, node.key)):
                    return True
        return False

    def others_use(self, seed: str, used: Reference) -> bool:
        """Whether another Seed, or its BackupBucket, names these credentials."""
        nodes = (node for kind in (garden.SEEDS, garden.BACKUP_BUCKETS) for node in self._naming(kind, used))
        return any(seed not in node.seeds for node in nodes)

    def _naming(self, resource: Resource, used: Reference) -> Iterator[Node]:
        return (node for _, node in self._nodes[resource].by_index(USES, ("", used)))

    def prepares(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether the object is for the gardenlet that is installed in a Shoot of the Seed."""
        return self.child(seed, resource, wanted) is not None

    def child(self, seed: str, resource: Resource, wanted: Key) -> Node | None:
        """The ManagedSeed in a Shoot of the Seed for whose gardenlet the object is."""
        children = self._naming(garden.MANAGED_SEEDS, Reference(resource, wanted))
        return next((child for child in children if self.owns(seed, child)), None)

    def template(self, seed: str, name: str) -> Node | None:
        """The ManagedSeed in a Shoot of the Seed from whose template the Seed of a name is made."""
        found = self.get(garden.MANAGED_SEEDS, Key(NAMESPACE, name))
        is_one = found is not None and found.template is not None and self.owns(seed, found)
        return found if is_one else None

    def has_shoots_in(self, seed: str, namespace: str) -> bool:
        return self._nodes[garden.SHOOTS].count(PLACES, (seed, namespace)) > 0

    def is_in(self, seed: str, namespace: str) -> bool:
        """Whether the Seed has Shoots, or backups of former ones, in the namespace."""
        return (
            self.has_shoots_in(seed, namespace)
            or self._nodes[garden.BACKUP_ENTRIES].count(PLACES, (seed, namespace)) > 0
        )

    def shoots_in(self, seed: str, namespace: str) -> Iterator[Node]:
        return (node for _, node in self._nodes[garden.SHOOTS].by_index(PLACES, (seed, namespace)))

    # --- what is named after Shoots

    def is_of_shoot(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether an object is one that a Shoot of the Seed has, by its name, whether it exists or not."""
        return any(self.has(seed, garden.SHOOTS, shoot) for shoot in shoots_of(resource, wanted))

    def is_backup(self, seed: str, wanted: Key) -> bool:
        """Whether a BackupEntry of this name is that of a Shoot of the Seed."""
        name = wanted.name.removeprefix(SOURCE_PREFIX)
        return any(shoot.backup == name for shoot in self.shoots_in(seed, wanted.namespace))

    def has_keys(self, seed: str, name: str) -> bool:
        """Whether a Secret of this name has the public keys of a Shoot of the Seed: `<project>--<uid>`."""
        project, _, cluster_uid = name.rpartition("--")
        found = self.get(garden.PROJECTS, Key("", project)) if project and cluster_uid else None
        namespaces = [] if found is None else [reference.key.name for reference in found.uses]
        return any(shoot.uid == cluster_uid for each in namespaces for shoot in self.shoots_in(seed, each))


_USERS = frozenset(resource for resource, kind in KINDS.items() if USES in kind.indexes) | {
    kubernetes.CERTIFICATE_SIGNING_REQUESTS
}


def shoots_of(resource: Resource, wanted: Key) -> Iterator[Key]:
    """The Shoot that an object of this name would belong to."""
    if resource == garden.SHOOT_STATES:
        yield Key(wanted.namespace, shoot_of_part(wanted.name))
    for suffix in NAMES_OF_SHOOT.get(resource, ()):
        if wanted.name.endswith(f".{suffix}"):
            yield Key(wanted.namespace, wanted.name.removesuffix(f".{suffix}"))
