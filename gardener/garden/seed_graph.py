"""Objects of a garden that belong to a Seed, and those that its gardenlet may therefore use: a graph.

A `Node` has the relevant data of an object: the Seeds that its own fields name, and its references. A gardenlet may
use an object that belongs to its Seed, and all objects that such an object uses, directly or through others:

    Seed                     credentials of backup and DNS, its BackupBucket
    BackupBucket             its credentials, those that an extension generated
    BackupEntry              its BackupBucket, which may be that of another Seed
    Shoot                    bindings, profile, exposure class, namespace, Secrets and ConfigMaps that it names
    SecretBinding, CredentialsBinding   Secret or WorkloadIdentity
    NamespacedCloudProfile   its parent
    ControllerInstallation   its ControllerDeployment and ControllerRegistration
    ManagedSeed, of a Shoot  backup Secret and bootstrap credentials of the gardenlet that is installed in the Shoot; or
                             its Seed, if it has a template

Objects named after a Shoot are not in the graph: rights to them follow from the Shoot, before they exist and after they
are deleted. Names derive from Project, name and metadata.uid of the Shoot, never from its status, which the gardenlet
writes. Secrets of the garden's own programs are never in it, even if an object refers to them.
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
from gardener.garden.shoots import parse_technical_id, references, seeds_of
from kube import resources as kubernetes
from kube.objects import (
    Key,
    Object,
    annotations,
    is_deleting,
    key,
    labels,
    mapping,
    mappings,
    metadata,
    spec,
    text,
    uid,
)
from kube.paths import at, mapping_at, mappings_at
from kube.resources import Resource

SOURCE_PREFIX = "source-"
"""Name prefix of a second BackupEntry of a Shoot, for backups that are copied from its former bucket."""
GENERATED_PREFIX = "generated-bucket-"
"""Name prefix of a Secret in `garden` with credentials of a BackupBucket, whose name follows."""
KEYS_NAMESPACE = "gardener-system-shoot-issuer"
"""Namespace in which public keys of Shoots are published."""
TOKEN_PREFIX = "bootstrap-token-"
"""Name prefix of bootstrap tokens: Secrets in `kube-system`."""

SECRETS_OF_SHOOT = (
    "ca-cluster",
    "ca-kubelet",
    "kubeconfig",
    "monitoring",
    "ssh-keypair",
    "ssh-keypair.old",
)
"""Name suffixes, after the name of the Shoot and a dot, of Secrets that its gardenlet publishes in its namespace."""
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


_RESERVED = frozenset({"workload-identity-issuer"})
_RESERVED_SUFFIXES = ("gardener-resource-manager-ca", "gardener-resource-manager-server")
"""Name suffixes after the prefix of an instance."""


def is_reserved(reference: Reference) -> bool:
    """Whether it is a Secret of the garden's own programs, which no Seed or Shoot needs."""
    namespace, name = reference.key
    if reference.resource != kubernetes.SECRETS:
        return False
    if namespace == NAMESPACE:
        return name in _RESERVED or name.endswith(_RESERVED_SUFFIXES)
    return namespace.startswith(("kube-", "gardener-system-"))


class Node(NamedTuple):
    key: Key
    seeds: tuple[str, ...] = ()
    """Seeds that it belongs to."""
    uses: tuple[Reference, ...] = ()
    shoot: Key | None = None
    """Shoot whose Seeds it belongs to, instead of `seeds`."""
    uid: str = ""
    """Uid of a Shoot or Seed."""
    of_uid: str = ""
    """Uid of the Seed that owns it, if it names one: another Seed of the same name has no right to it."""
    is_deleting: bool = False
    renews: bool = False
    """Whether new credentials are requested for the gardenlet of a ManagedSeed."""
    expires: str = ""
    """Expiration of the certificate of the gardenlet of a Seed; empty if it has none yet."""
    named: tuple[Reference, ...] = ()
    """References in the spec of a Seed, also in that of a ManagedSeed or Gardenlet."""
    is_template: bool = False
    """Whether the Seed of a ManagedSeed is made from a template."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of a Seed, or those that a ManagedSeed or Gardenlet gives it."""
    selects: tuple[str, ...] = ()
    """Labels by which it selects Seeds."""


# --- nodes


def of_shoot(shoot: Object) -> Node:
    where = key(shoot)
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
    return Node(where, tuple(seeds_of(shoot)), _readable(uses), uid=uid(shoot))


def of_seed(seed: Object) -> Node:
    where, named = key(seed), tuple(_named(spec(seed)))
    uses = (
        *named,
        Reference(garden.BACKUP_BUCKETS, Key("", uid(seed))),
        Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{uid(seed)}")),
    )
    expires = text(at(seed, "status", "clientCertificateExpirationTimestamp"))
    return Node(
        where, (where.name,), _readable(uses), uid=uid(seed), expires=expires, named=named, labels=_labels(seed)
    )


def _named(seed_spec: Object) -> Iterator[Reference]:
    """References of a Seed to credentials, and to resources for extensions."""
    yield from _credentials(mapping(seed_spec.get("backup")))
    yield from _credentials(mapping_at(seed_spec, "dns", "provider"))
    yield from _credentials(mapping_at(seed_spec, "dns", "internal"))
    for domain in mappings_at(seed_spec, "dns", "defaults"):
        yield from _credentials(domain)
    yield from _resources(seed_spec)


def of_backup_bucket(bucket: Object) -> Node:
    where = key(bucket)
    named = (
        *_credentials(spec(bucket)),
        *_credentials({"secretRef": at(bucket, "status", "generatedSecretRef")}),
    )
    uses = (*named, Reference(kubernetes.SECRETS, Key(NAMESPACE, f"{GENERATED_PREFIX}{where.name}")))
    owners = mappings(metadata(bucket).get("ownerReferences"))
    of_uid = next((text(each.get("uid")) for each in owners if each.get("kind") == garden.SEEDS.kind), "")
    return Node(
        where,
        _seeds(spec(bucket).get("seedName")),
        _readable(uses),
        of_uid=of_uid,
        is_deleting=is_deleting(bucket),
        named=named,
    )


def of_backup_entry(entry: Object) -> Node:
    return Node(key(entry), tuple(seeds_of(entry)), tuple(_all(garden.BACKUP_BUCKETS, users.backup_buckets(entry))))


def of_bastion(bastion: Object) -> Node:
    return Node(key(bastion), _seeds(spec(bastion).get("seedName")))


def of_binding(binding: Object) -> Node:
    found = (
        *_all(kubernetes.SECRETS, users.secrets(binding)),
        *_all(garden.WORKLOAD_IDENTITIES, users.workload_identities(binding)),
    )
    return Node(key(binding), uses=_readable(found))


def of_namespaced_cloud_profile(profile: Object) -> Node:
    return Node(key(profile), uses=tuple(_all(garden.CLOUD_PROFILES, users.parents(profile))))


def of_controller_installation(installation: Object) -> Node:
    uses = (
        Reference(resource, Key("", name))
        for resource, field in (
            (garden.CONTROLLER_DEPLOYMENTS, "deploymentRef"),
            (garden.CONTROLLER_REGISTRATIONS, "registrationRef"),
        )
        if (name := text(at(installation, "spec", field, "name")))
    )
    return Node(key(installation), _seeds(at(installation, "spec", "seedRef", "name")), tuple(uses))


def of_managed_seed(managed_seed: Object) -> Node:
    where = key(managed_seed)
    wanted = spec(managed_seed)
    seed = mapping_at(wanted, *seed_template_path(wanted))
    seed_spec = spec(seed)
    account = bootstrap_account(where)
    uses = (
        *_readable(_credentials(mapping(seed_spec.get("backup")))),
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
        uid=uid(managed_seed),
        is_deleting=is_deleting(managed_seed),
        renews=renews,
        named=tuple(_named(seed_spec)),
        is_template=wanted.get("seedTemplate") is not None,
        labels=_labels(seed),
    )


def of_gardenlet(gardenlet: Object) -> Node:
    seed = mapping_at(spec(gardenlet), "config", "seedConfig")
    return Node(key(gardenlet), named=tuple(_named(spec(seed))), labels=_labels(seed))


def of_project(project: Object) -> Node:
    found = (Reference(kubernetes.NAMESPACES, each) for each in users.namespaces(project))
    return Node(key(project), uses=tuple(found))


def of_seed_selector(*path: str) -> Callable[[Object], Node]:
    """Args: path: of the LabelSelector in the spec or the object itself."""

    def node(obj: Object) -> Node:
        selector = mapping_at(obj, *path)
        names = (text(each.get("key")) for each in mappings(selector.get("matchExpressions")))
        return Node(key(obj), selects=tuple(dict.fromkeys((*mapping(selector.get("matchLabels")), *names))))

    return node


def _labels(seed: Object) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels(seed).items()))


def _all(resource: Resource, keys: Iterable[Key]) -> Iterator[Reference]:
    return (Reference(resource, each) for each in keys)


def _readable(references: Iterable[Reference]) -> tuple[Reference, ...]:
    return tuple(each for each in references if not is_reserved(each))


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
    """References of a Seed for extensions, in `garden`."""
    for each in mappings_at(seed_spec, "resources"):
        reference = mapping(each.get("resourceRef"))
        for resource in (kubernetes.SECRETS, kubernetes.CONFIG_MAPS):
            if reference.get("kind") == resource.kind and (name := text(reference.get("name"))):
                yield Reference(resource, Key(NAMESPACE, name))


# --- the graph

USES, PLACES, OF_SEED, TOKENS, SELECTS = "uses", "places", "of seed", "tokens", "selects"


def used(node: Node) -> Iterator[tuple[str, Reference]]:
    """An index: the Seeds that the node itself names, each with the objects that the node uses."""
    return ((seed, reference) for reference in node.uses for seed in node.seeds)


def used_by_name(node: Node) -> Iterator[tuple[str, Reference]]:
    """The same without Seeds, for nodes whose Seeds the graph determines."""
    return (("", reference) for reference in node.uses)


def places(node: Node) -> Iterator[tuple[str, str]]:
    """An index: Seeds, with the namespaces of their objects."""
    return ((seed, node.key.namespace) for seed in node.seeds)


def belongs_to(node: Node) -> Iterator[str]:
    """An index: Seeds that it belongs to."""
    yield from node.seeds


def tokens(node: Node) -> Iterator[str]:
    """An index: the name of the bootstrap token of a Seed."""
    yield f"{TOKEN_PREFIX}{bootstrap_token_id(Key(NAMESPACE, node.key.name))}"


def selects(node: Node) -> Iterator[str]:
    """An index: labels by which it selects Seeds."""
    yield from node.selects


class Nodes(Protocol):
    """The nodes of a kind, such as those of a `kube.runtime.cache.Store`."""

    def get(self, wanted: Key, /) -> Node | None: ...

    def by_index(self, name: str, value: Hashable, /) -> Iterator[tuple[Key, Node]]: ...

    def count(self, name: str, value: Hashable, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """Conversion of objects of a kind to nodes, and the indexes of these."""

    node: Callable[[Object], Node]
    indexes: Mapping[str, Callable[[Node], Iterable[Hashable]]] = field(default_factory=dict)


_USES, _NAMES = {USES: used}, {USES: used_by_name}
KINDS: dict[Resource, Kind] = {
    garden.BACKUP_BUCKETS: Kind(of_backup_bucket, _NAMES),
    garden.BACKUP_ENTRIES: Kind(of_backup_entry, {USES: used, PLACES: places}),
    garden.BASTIONS: Kind(of_bastion),
    garden.CLOUD_PROFILES: Kind(of_seed_selector("spec", "seedSelector"), {SELECTS: selects}),
    garden.CONTROLLER_INSTALLATIONS: Kind(of_controller_installation, _USES),
    garden.CONTROLLER_REGISTRATIONS: Kind(of_seed_selector("spec", "deployment", "seedSelector"), {SELECTS: selects}),
    garden.CREDENTIALS_BINDINGS: Kind(of_binding, _NAMES),
    garden.EXPOSURE_CLASSES: Kind(of_seed_selector("scheduling", "seedSelector"), {SELECTS: selects}),
    garden.GARDENLETS: Kind(of_gardenlet),
    garden.MANAGED_SEEDS: Kind(of_managed_seed, _NAMES),
    garden.NAMESPACED_CLOUD_PROFILES: Kind(of_namespaced_cloud_profile, _NAMES),
    garden.PROJECTS: Kind(of_project),
    garden.SECRET_BINDINGS: Kind(of_binding, _NAMES),
    garden.SEEDS: Kind(of_seed, {USES: used, TOKENS: tokens}),
    garden.SHOOTS: Kind(of_shoot, {USES: used, PLACES: places, OF_SEED: belongs_to}),
}
"""All kinds in the graph; the programs that can decode CertificateSigningRequests add these."""


class Graph:
    def __init__(self, nodes: Mapping[Resource, Nodes]) -> None:
        self._nodes = nodes
        self._users = [(resource, found) for resource, found in nodes.items() if resource in _USERS]

    def get(self, resource: Resource, wanted: Key) -> Node | None:
        return self._nodes[resource].get(wanted)

    def has(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether the object exists and belongs to the Seed."""
        found = self.get(resource, wanted)
        if found is not None and resource == _BEFORE_SEED:
            return seed in found.seeds
        return found is not None and self.owns(seed, found)

    def owns(self, seed: str, node: Node) -> bool:
        if node.shoot is not None:
            return self.has(seed, garden.SHOOTS, node.shoot)
        own = self.seed(seed)
        return own is not None and seed in node.seeds and node.of_uid in {"", own.uid}

    def seed(self, name: str) -> Node | None:
        """The Seed; if it does not exist, nothing belongs to it."""
        return self.get(garden.SEEDS, Key("", name))

    def uses(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether any object of the Seed uses the object, directly or through others."""
        used = Reference(resource, wanted)
        return not self.is_ambiguous(used) and self._uses(seed, used)

    def _uses(self, seed: str, wanted: Reference) -> bool:
        if self.seed(seed) is None:
            return self._nodes[_BEFORE_SEED].count(USES, (seed, wanted)) > 0
        if any(nodes.count(USES, (seed, wanted)) for _, nodes in self._users):
            return True
        if any(self._uses_by_shoots(seed, wanted, each) for each in _OF_SHOOTS):
            return True
        for resource in _BETWEEN:
            for node in self._naming(resource, wanted):
                # An object in between, such as a ManagedSeed of a Shoot, or one that others use.
                if self.owns(seed, node) or self._uses(seed, Reference(resource, node.key)):
                    return True
        return False

    def _uses_by_shoots(self, seed: str, wanted: Reference, between: Resource) -> bool:
        """Whether Shoots of the Seed use objects of a kind that use this. There may be any number of either."""
        nodes, shoots = self._nodes[between], self._nodes[garden.SHOOTS]
        if nodes.count(USES, ("", wanted)) <= shoots.count(OF_SEED, seed):
            named = self._naming(between, wanted)
            return any(shoots.count(USES, (seed, Reference(between, node.key))) for node in named)
        of_shoots = (each for _, shoot in shoots.by_index(OF_SEED, seed) for each in shoot.uses)
        found = (nodes.get(each.key) for each in of_shoots if each.resource == between)
        return any(node is not None and wanted in node.uses for node in found)

    def buckets(self, seed: str, resource: Resource, wanted: Key) -> Iterator[Node]:
        """BackupBuckets of the Seed with these credentials."""
        named = self._naming(garden.BACKUP_BUCKETS, Reference(resource, wanted))
        return (bucket for bucket in named if self.owns(seed, bucket))

    def entered(self, seed: str) -> Iterator[Reference]:
        """References for the Seed that are already present: in it, its ManagedSeed or its Gardenlet."""
        for resource, namespace in (
            (garden.SEEDS, ""),
            (garden.MANAGED_SEEDS, NAMESPACE),
            (garden.GARDENLETS, NAMESPACE),
        ):
            found = self.get(resource, Key(namespace, seed))
            yield from () if found is None else found.named

    def are_selected_by(self, label: str) -> bool:
        """Whether operators select Seeds by this label."""
        return any(self._nodes[resource].count(SELECTS, label) for resource in _SELECTORS)

    def _naming(self, resource: Resource, used: Reference) -> Iterator[Node]:
        return (node for _, node in self._nodes[resource].by_index(USES, ("", used)))

    def prepares(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether the object is for the gardenlet that is installed in a Shoot of the Seed."""
        return self.child(seed, resource, wanted) is not None

    def child(self, seed: str, resource: Resource, wanted: Key) -> Node | None:
        """The ManagedSeed in a Shoot of the Seed whose gardenlet needs the object."""
        return next(self.children(seed, resource, wanted), None)

    def children(self, seed: str, resource: Resource, wanted: Key) -> Iterator[Node]:
        used = Reference(resource, wanted)
        named = () if self.is_ambiguous(used) else self._naming(garden.MANAGED_SEEDS, used)
        return (child for child in named if self.owns(seed, child))

    def is_ambiguous(self, wanted: Reference) -> bool:
        """Whether it would be the bootstrap token of two: its id is a truncated hash, so it belongs to neither."""
        if wanted.resource != kubernetes.SECRETS or not wanted.key.name.startswith(TOKEN_PREFIX):
            return False
        names = {where.name for where, _ in self._nodes[garden.SEEDS].by_index(TOKENS, wanted.key.name)}
        names |= {child.key.name for child in self._naming(garden.MANAGED_SEEDS, wanted)}
        return len(names) > 1

    def template(self, seed: str, name: str) -> Node | None:
        """The ManagedSeed in a Shoot of the Seed whose template defines the Seed of this name."""
        found = self.get(garden.MANAGED_SEEDS, Key(NAMESPACE, name))
        is_one = found is not None and found.is_template and self.owns(seed, found)
        return found if is_one else None

    def has_shoots_in(self, seed: str, namespace: str) -> bool:
        return self._has_in(garden.SHOOTS, seed, namespace)

    def _has_in(self, resource: Resource, seed: str, namespace: str) -> bool:
        return self.seed(seed) is not None and self._nodes[resource].count(PLACES, (seed, namespace)) > 0

    def is_in(self, seed: str, namespace: str) -> bool:
        """Whether the Seed has Shoots, or backups of former ones, in the namespace."""
        return any(self._has_in(resource, seed, namespace) for resource in (garden.SHOOTS, garden.BACKUP_ENTRIES))

    def shoots_in(self, seed: str, namespace: str) -> Iterator[Node]:
        found = self._nodes[garden.SHOOTS].by_index(PLACES, (seed, namespace))
        return (node for _, node in found if self.owns(seed, node))

    # --- objects named after Shoots

    def is_of_shoot(self, seed: str, resource: Resource, wanted: Key) -> bool:
        """Whether the name of an object is one that belongs to a Shoot of the Seed; it need not exist."""
        return any(self.has(seed, garden.SHOOTS, shoot) for shoot in shoots_of(resource, wanted))

    def is_backup(self, seed: str, wanted: Key) -> bool:
        """Whether the name of a BackupEntry belongs to a Shoot of the Seed."""
        shoot = self.shoot_of_backup(wanted)
        return shoot is not None and self.owns(seed, shoot)

    def shoot_of_backup(self, wanted: Key) -> Node | None:
        """The Shoot to which a BackupEntry belongs by its name: `shoot--<project>--<name>--<uid>`."""
        technical_id, _, shoot_uid = wanted.name.removeprefix(SOURCE_PREFIX).rpartition("--")
        project, name = parse_technical_id(technical_id)
        found = self.get(garden.SHOOTS, Key(wanted.namespace, name)) if project and shoot_uid else None
        is_its = found is not None and found.uid == shoot_uid and self.is_of_project(wanted.namespace, project)
        return found if is_its else None

    def is_of_project(self, namespace: str, project: str) -> bool:
        found = self.get(garden.PROJECTS, Key("", project))
        return found is not None and any(each.key.name == namespace for each in found.uses)

    def has_keys(self, seed: str, name: str) -> bool:
        """Whether a Secret of this name has the public keys of a Shoot of the Seed: `<project>--<uid>`."""
        project, _, shoot_uid = name.rpartition("--")
        found = self.get(garden.PROJECTS, Key("", project)) if project and shoot_uid else None
        namespaces = [] if found is None else [reference.key.name for reference in found.uses]
        return any(shoot.uid == shoot_uid for each in namespaces for shoot in self.shoots_in(seed, each))


_BEFORE_SEED = kubernetes.CERTIFICATE_SIGNING_REQUESTS
"""Objects of a gardenlet before it registers its Seed, from its bootstrap credentials."""
_OF_SHOOTS = (garden.CREDENTIALS_BINDINGS, garden.NAMESPACED_CLOUD_PROFILES, garden.SECRET_BINDINGS)
"""Kinds that only Shoots use, and that members of Projects create."""
_BETWEEN = (garden.BACKUP_BUCKETS, garden.MANAGED_SEEDS)
_SELECTORS = frozenset(resource for resource, kind in KINDS.items() if SELECTS in kind.indexes)
_USERS = frozenset(resource for resource, kind in KINDS.items() if USES in kind.indexes) | {_BEFORE_SEED}


def shoots_of(resource: Resource, wanted: Key) -> Iterator[Key]:
    """The Shoot that an object of this name would belong to."""
    if resource == garden.SHOOT_STATES:
        yield Key(wanted.namespace, shoot_of_part(wanted.name))
    for suffix in NAMES_OF_SHOOT.get(resource, ()):
        if wanted.name.endswith(f".{suffix}"):
            yield Key(wanted.namespace, wanted.name.removesuffix(f".{suffix}"))


def projects_named(plural: str, wanted: Key) -> Iterator[Reference]:
    """The Project in the name of a BackupEntry, or of a Secret with public keys: `is_backup`, `has_keys`."""
    name, _, _ = wanted.name.removeprefix(SOURCE_PREFIX).rpartition("--")
    if plural == garden.BACKUP_ENTRIES.plural:
        name, _ = parse_technical_id(name)
    elif plural != kubernetes.SECRETS.plural or wanted.namespace != KEYS_NAMESPACE:
        return
    if name:
        yield Reference(garden.PROJECTS, Key("", name))
