"""Roles for a Shoot and a Seed; functions from objects to objects."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gardener.api import garden
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import (
    GENERATED_PREFIX,
    KEYS_NAMESPACE,
    NAMES_OF_SHOOT,
    TOKEN_PREFIX,
    Node,
    Reference,
)
from gardener.garden.seeds import bootstrap_account, bootstrap_binding, namespace_of
from gardener.garden.shoot_states import names_of_parts
from gardener.keys import SEED_USER_PREFIX
from kube import resources as kubernetes
from kube.objects import Key, Object
from kube.resources import Resource

_READ = ("get", "list", "watch")
_CHANGE = ("update", "patch")
_OWN = (*_READ, *_CHANGE, "delete")
_CREATE = ("create",)
_ALL = (*_OWN, "create")
_SYSTEM = "kube-system"

_Right = tuple[Resource, str, tuple[str, ...]]
"""Resource, subresource, and verbs."""


@dataclass(slots=True)
class Grants:
    """Rights of the gardenlet of a Seed, by namespace; the empty one is that of the cluster."""

    by_namespace: dict[str, dict[_Right, set[str] | None]] = field(default_factory=dict)
    """Names of objects; None for all of them."""

    def add(
        self, namespace: str, resource: Resource, verbs: tuple[str, ...], names: Iterable[str], subresource: str = ""
    ) -> None:
        """Add rights to named objects; without names, to none."""
        if wanted := set(names):
            known = self.by_namespace.setdefault(namespace, {}).setdefault((resource, subresource, verbs), set())
            if known is not None:
                known |= wanted

    def add_all(self, namespace: str, resource: Resource, verbs: tuple[str, ...], subresource: str = "") -> None:
        """Add rights to all objects of a namespace."""
        self.by_namespace.setdefault(namespace, {})[resource, subresource, verbs] = None

    def use(self, references: Iterable[Reference], verbs: tuple[str, ...] = _READ) -> None:
        """Add rights to credentials and ConfigMaps among the references."""
        for resource, where in references:
            if resource in {kubernetes.SECRETS, kubernetes.CONFIG_MAPS}:
                self.add(where.namespace, resource, verbs, [where.name])
            elif resource == garden.WORKLOAD_IDENTITIES:
                self.add(where.namespace, resource, _CREATE, [where.name], "token")

    def protect(self, credentials: Iterable[Reference]) -> None:
        """Add rights to put a finalizer on credentials."""
        for resource, where in credentials:
            self.add(where.namespace, resource, _CHANGE, [where.name])


def of_shoot(shoot: Node, credentials: Iterable[Reference], *, project: str) -> Grants:
    """Rights to a Shoot; `credentials` of its bindings, `project` is the name of its Project, empty if it has none."""
    found, namespace = Grants(), shoot.key.namespace
    for resource, suffixes in NAMES_OF_SHOOT.items():
        found.add(namespace, resource, _OWN, (f"{shoot.key.name}.{suffix}" for suffix in suffixes))
        found.add_all(namespace, resource, _CREATE)
    found.add(namespace, garden.SHOOT_STATES, _OWN, names_of_parts(shoot.key.name))
    found.add_all(namespace, garden.SHOOT_STATES, _CREATE)
    found.use(shoot.uses)
    found.use(credentials)
    if project and shoot.uid:
        found.add(KEYS_NAMESPACE, kubernetes.SECRETS, _OWN, [f"{project}--{shoot.uid}"])
        found.add_all(KEYS_NAMESPACE, kubernetes.SECRETS, _CREATE)
    return found


def of_seed(seed: Node, buckets: Sequence[Node], children: Sequence[Node], *, tokens: Iterable[str]) -> Grants:
    """Rights to a Seed.

    `buckets` are those of the Seed and of its BackupEntries, `children` its ManagedSeeds, `tokens` the ids of their
    bootstrap tokens and its own, except those that another Seed may have.
    """
    found, name = Grants(), seed.key.name
    own = namespace_of(name)
    for resource in (kubernetes.SECRETS, kubernetes.SERVICE_ACCOUNTS):
        found.add_all(own, resource, _ALL)
    found.add_all(own, kubernetes.SERVICE_ACCOUNTS, _CREATE, "token")
    found.add(own, kubernetes.CONFIG_MAPS, _READ, ["kube-root-ca.crt"])
    found.use(seed.uses)
    for bucket in buckets:
        found.use(bucket.uses)
    own_buckets = [each for each in buckets if name in each.seeds and each.of_uid in {"", seed.uid}]
    for bucket in own_buckets:
        found.protect(bucket.uses)
    generated = [f"{GENERATED_PREFIX}{each}" for each in (seed.uid, *(bucket.key.name for bucket in own_buckets))]
    found.add(NAMESPACE, kubernetes.SECRETS, _OWN, generated)
    for child in children:
        found.use((each for each in child.uses if each.key.namespace != _SYSTEM), _OWN)
    found.add(_SYSTEM, kubernetes.SECRETS, _OWN, (f"{TOKEN_PREFIX}{token}" for token in tokens))
    accounts = [bootstrap_account(owner) for owner in (Key(NAMESPACE, name), *(child.key for child in children))]
    names = [account.name for account in accounts]
    found.add(NAMESPACE, kubernetes.SERVICE_ACCOUNTS, _OWN, names)
    found.add(NAMESPACE, kubernetes.SERVICE_ACCOUNTS, _CREATE, names, "token")
    for namespace, resource in (
        (NAMESPACE, kubernetes.SECRETS),
        (NAMESPACE, kubernetes.SERVICE_ACCOUNTS),
        (_SYSTEM, kubernetes.SECRETS),
    ):
        found.add_all(namespace, resource, _CREATE)
    found.add("", kubernetes.CLUSTER_ROLE_BINDINGS, _OWN, map(bootstrap_binding, accounts))
    return found


def roles(grants: Grants, *, seed: str, owner: Key) -> Iterator[Object]:
    """Role and binding for each namespace, or those of the cluster."""
    suffix = f":{owner.namespace}:{owner.name}" if owner.namespace else ""
    name = f"gardener.cloud:seed:{seed}{suffix}"
    subject = {"apiGroup": kubernetes.RBAC_GROUP, "kind": "User", "name": f"{SEED_USER_PREFIX}{seed}"}
    for namespace, rights in grants.by_namespace.items():
        of_cluster = (kubernetes.CLUSTER_ROLES, kubernetes.CLUSTER_ROLE_BINDINGS)
        role, binding = (kubernetes.ROLES, kubernetes.ROLE_BINDINGS) if namespace else of_cluster
        meta = {"name": name, **({"namespace": namespace} if namespace else {})}
        yield {**role.type_meta, "metadata": meta, "rules": [_rule(*each) for each in rights.items()]}
        reference = {"apiGroup": kubernetes.RBAC_GROUP, "kind": role.kind, "name": name}
        yield {**binding.type_meta, "metadata": dict(meta), "roleRef": reference, "subjects": [subject]}


def _rule(right: _Right, names: set[str] | None) -> Object:
    resource, subresource, verbs = right
    named = f"{resource.plural}/{subresource}" if subresource else resource.plural
    rule: Object = {"apiGroups": [resource.group], "resources": [named], "verbs": list(verbs)}
    return rule if names is None else rule | {"resourceNames": sorted(names)}
