"""The controller `seed-roles`.

Shoots          whose references or Seeds change; if one is a ManagedSeed's: its Seeds
bindings        their Shoots
Projects        that get a namespace: its Shoots
Seeds, BackupBuckets, BackupEntries, ManagedSeeds   their Seeds
Seeds, ManagedSeeds   that come and go: Seeds whose bootstrap token has the same id
Namespaces      of Seeds that come
Roles           that differ from those written: their owners
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain

from agent.controller_manager.common.api import (
    BACKUP_BUCKETS_VIEW,
    BY_CREDENTIALS_BINDING,
    BY_NAMESPACE,
    BY_SECRET_BINDING,
    BY_SHOOT,
    BY_TOKEN,
    CREDENTIALS_BINDINGS_VIEW,
    MANAGED_SEEDS_VIEW,
    NAMESPACES_VIEW,
    PROJECTS_VIEW,
    SECRET_BINDINGS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.context import Context
from agent.controller_manager.seed.roles.reconcile import BY_USER, Reconciler, Stores
from gardener.api.garden import BACKUP_ENTRIES, CREDENTIALS_BINDINGS, SECRET_BINDINGS, SEEDS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seed_graph import Node, of_backup_bucket, of_backup_entry, of_binding, of_project, of_shoot
from gardener.garden.seed_graph import of_managed_seed as node_of_managed_seed
from gardener.garden.seed_graph import of_seed as node_of_seed
from gardener.garden.seeds import bootstrap_token_id, seed_of
from kube.apply.object_sets import Marks, ObjectSets
from kube.objects import Key, Object
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped, enqueue_users, enqueue_users_of
from kube.runtime.predicates import Predicate, any_of, came, went
from kube.runtime.priorities import CHANGE

LABEL, ROLE = "gardener.cloud/role", "seed-rights"
"""Label of all Roles and bindings made here."""
OWNER = "seed-roles.gardener.cloud/owner"
DIGEST = "seed-roles.gardener.cloud/digest"
FIELD_MANAGER = "gardener-controller-manager"

_ENTRIES_VIEW = View(BACKUP_ENTRIES, of_backup_entry, indexes=((BY_USER, lambda node: node.seeds),), packs=False)


def declare(context: Context) -> ControlLoop:
    garden, settings = context.garden, context.config.controllers.seed_roles
    loop = ControlLoop("seed-roles", kind=SEEDS, workers=settings.concurrent_syncs)
    watch = partial(loop.watch, garden.caches)
    managed_seeds = watch(MANAGED_SEEDS_VIEW)
    shoots = watch(SHOOTS_VIEW, enqueue(when=_changed(of_shoot)))
    stores = Stores(
        shoots=shoots,
        seeds=watch(SEEDS_VIEW, enqueue(when=_changed(node_of_seed))),
        projects=watch(
            PROJECTS_VIEW,
            enqueue_users_of(_namespaces, partial(shoots.keys_by_index, BY_NAMESPACE), when=_changed(of_project)),
        ),
        managed_seeds=managed_seeds,
        buckets=watch(BACKUP_BUCKETS_VIEW, enqueue_mapped(_of_bucket, when=_changed(of_backup_bucket))),
        entries=watch(_ENTRIES_VIEW, enqueue_mapped(_of_entry)),
        bindings={
            SECRET_BINDINGS: watch(
                SECRET_BINDINGS_VIEW,
                enqueue_users(partial(_of_binding, shoots, BY_SECRET_BINDING), when=_changed(of_binding)),
            ),
            CREDENTIALS_BINDINGS: watch(
                CREDENTIALS_BINDINGS_VIEW,
                enqueue_users(partial(_of_binding, shoots, BY_CREDENTIALS_BINDING), when=_changed(of_binding)),
            ),
        },
    )
    watch(SHOOTS_VIEW, enqueue_mapped(partial(_of_host, managed_seeds), when=_changed(of_shoot)))
    watch(MANAGED_SEEDS_VIEW, enqueue_mapped(partial(_of_child, shoots), when=_changed(node_of_managed_seed)))
    for view in (SEEDS_VIEW, MANAGED_SEEDS_VIEW):
        watch(view, enqueue_mapped(partial(_of_token, stores), when=any_of(came, went)))
    watch(NAMESPACES_VIEW, enqueue_mapped(_of_namespace, when=came))
    sets = ObjectSets(
        client=garden.client,
        discovery=garden.discovery,
        caches=garden.caches,
        marks=Marks(label=LABEL, value=ROLE, owner=OWNER, digest=DIGEST, field_manager=FIELD_MANAGER),
        on_change=lambda owner: loop.queue.add(_key(owner), CHANGE),
    )
    loop.on_close(sets.close)
    return loop.reconciled_by(Reconciler(stores=stores, sets=lambda: sets))


def _changed(node: Callable[[Object], Node]) -> Predicate[Object]:
    """Whether fields that rights depend on have changed."""

    def is_changed(change: Change[Object]) -> bool:
        if change.old is None or change.new is None or change.initial:
            return True
        return node(change.old) != node(change.new)

    return is_changed


def _states(change: Change[Object]) -> list[Object]:
    return [each for each in (change.old, change.new) if each is not None]


def _seeds(names: Iterable[str]) -> list[Key]:
    return [Key("", name) for name in dict.fromkeys(names)]


def _namespaces(change: Change[Object]) -> Iterable[str]:
    """Namespaces of a Project."""
    return dict.fromkeys(used.key.name for each in _states(change) for used in of_project(each).uses)


def _of_bucket(change: Change[Object]) -> list[Key]:
    return _seeds(seed for each in _states(change) for seed in of_backup_bucket(each).seeds)


def _of_entry(change: Change[Node]) -> list[Key]:
    return _seeds(seed for each in (change.old, change.new) if each is not None for seed in each.seeds)


def _of_binding(shoots: Store[Object], index: str, binding: Key) -> list[Key]:
    return shoots.keys_by_index(index, binding)


def _of_host(managed_seeds: Store[Object], change: Change[Object]) -> list[Key]:
    if not managed_seeds.count(BY_SHOOT, change.key):
        return []
    return _seeds(seed for each in _states(change) for seed in of_shoot(each).seeds)


def _of_child(shoots: Store[Object], change: Change[Object]) -> list[Key]:
    return [seed for each in _states(change) for seed in _parents(shoots, each)]


def _parents(shoots: Store[Object], managed_seed: Object) -> list[Key]:
    host = node_of_managed_seed(managed_seed).shoot
    shoot = None if host is None else shoots.get(host)
    return [] if shoot is None else _seeds(of_shoot(shoot).seeds)


def _of_token(stores: Stores, change: Change[Object]) -> list[Key]:
    """Seeds with a right to a bootstrap token that may also be that of this Seed."""
    token = bootstrap_token_id(Key(NAMESPACE, change.key.name))
    children = stores.managed_seeds.values_by_index(BY_TOKEN, token)
    parents = (_parents(stores.shoots, each) for each in children)
    return [*stores.seeds.keys_by_index(BY_TOKEN, token), *chain.from_iterable(parents)]


def _of_namespace(change: Change[Object]) -> list[Key]:
    return [Key("", seed)] if (seed := seed_of(change.key.name)) else []


def _key(owner: str) -> Key:
    namespace, slash, name = owner.partition("/")
    return Key(namespace, name) if slash else Key("", owner)
