"""One pass over a Shoot or a Seed: create its Roles, and remove obsolete ones."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agent.controller_manager.common.api import BY_NAMESPACE, BY_SEED, BY_SHOOT, BY_TOKEN
from agent.controller_manager.seed.roles import rules
from gardener.api.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import Node, Reference, of_backup_bucket, of_binding, of_managed_seed, of_shoot
from gardener.garden.seed_graph import of_seed as node_of_seed
from gardener.garden.seeds import bootstrap_token_id
from kube import resources as kubernetes
from kube.apply.object_sets import ObjectSets
from kube.objects import Key, Object, uid
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.controller import Done, ReconcileError, Result

KINDS = (kubernetes.ROLES, kubernetes.ROLE_BINDINGS, kubernetes.CLUSTER_ROLES, kubernetes.CLUSTER_ROLE_BINDINGS)
BY_USER = "user"
"""Index of BackupEntries by the Seeds that have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    shoots: Store[Object]
    seeds: Store[Object]
    projects: Store[Object]
    managed_seeds: Store[Object]
    buckets: Store[Object]
    entries: Store[Node]
    bindings: dict[Resource, Store[Object]]


class Reconciler:
    """Reconcile Roles; a key without a namespace is that of a Seed."""

    def __init__(self, *, stores: Stores, sets: Callable[[], ObjectSets]) -> None:
        self._stores = stores
        self._sets = sets

    async def reconcile(self, key: Key) -> Result:
        wanted = list(self._of_shoot(key) if key.namespace else self._of_seed(key))
        changes = await self._sets().apply(wanted, owner=str(key), previous=KINDS)
        if changes.errors:
            raise ReconcileError("; ".join(f"{name}: {text}" for name, text in sorted(changes.errors.items())))
        return Done()

    # --- Shoots

    def _of_shoot(self, key: Key) -> Iterator[Object]:
        shoot = self._stores.shoots.get(key)
        if shoot is None:
            return
        node = of_shoot(shoot)
        grants = rules.of_shoot(node, self._credentials(node), project=self._project(key.namespace))
        for seed in node.seeds:
            yield from rules.roles(grants, seed=seed, owner=key)

    def _credentials(self, shoot: Node) -> Iterator[Reference]:
        for resource, where in shoot.uses:
            if resource in {SECRET_BINDINGS, CREDENTIALS_BINDINGS}:
                binding = self._stores.bindings[resource].get(where)
                yield from of_binding(binding).uses if binding is not None else ()

    def _project(self, namespace: str) -> str:
        return next((key.name for key in self._stores.projects.keys_by_index(BY_NAMESPACE, namespace)), "")

    # --- Seeds

    def _of_seed(self, key: Key) -> Iterator[Object]:
        seed = self._stores.seeds.get(key)
        if seed is None:
            return
        buckets, children = list(self._buckets(key.name, uid(seed))), list(self._children(key.name))
        owners = (Key(NAMESPACE, key.name), *(child.key for child in children))
        grants = rules.of_seed(node_of_seed(seed), buckets, children, tokens=self._tokens(owners))
        yield from rules.roles(grants, seed=key.name, owner=key)

    def _buckets(self, seed: str, seed_uid: str) -> Iterator[Node]:
        """BackupBuckets of the Seed, and those that its BackupEntries are in."""
        buckets = self._stores.buckets
        own = (of_backup_bucket(each) for each in buckets.values_by_index(BY_SEED, seed))
        names = {each.key for each in own if each.of_uid in {"", seed_uid}}
        for _, entry in self._stores.entries.by_index(BY_USER, seed):
            names.update(used.key for used in entry.uses)
        for name in sorted(names):
            if (bucket := buckets.get(name)) is not None:
                yield of_backup_bucket(bucket)

    def _children(self, seed: str) -> Iterator[Node]:
        for shoot in self._stores.shoots.keys_by_index(BY_SEED, seed):
            for child in self._stores.managed_seeds.values_by_index(BY_SHOOT, shoot):
                yield of_managed_seed(child)

    def _tokens(self, owners: Iterable[Key]) -> Iterator[str]:
        """Ids of bootstrap tokens. They are truncated hashes of names: an id of two names belongs to neither."""
        stores = (self._stores.seeds, self._stores.managed_seeds)
        for token in map(bootstrap_token_id, owners):
            if len({each.name for store in stores for each in store.keys_by_index(BY_TOKEN, token)}) < 2:
                yield token
