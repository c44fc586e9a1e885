"""The controller `managedseedset`: reconciles a set when one of its replicas changes in a relevant field.

Shoots and ManagedSeeds name their set as owner, Seeds are found by the name of the replica. A Shoot that comes onto a
Seed, or leaves it, leads to a pass over the set of that Seed: it may have waited for one that is empty.
"""

from collections.abc import Iterator

from agent.controller_manager.common.api import (
    BY_NAMESPACE,
    MANAGED_SEED_SETS_VIEW,
    MANAGED_SEEDS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.context import Context
from agent.controller_manager.managed_seed_set.history import Keeper
from agent.controller_manager.managed_seed_set.reconcile import Reconciler
from agent.controller_manager.managed_seed_set.set_objects import SetObjects
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.managed_seed_sets import health_of, is_seed_ready, managed_seed_state, shoot_state
from gardener.garden.shoots import seeds_of
from kube.objects import (
    Key,
    Object,
    controller_of,
    labels,
    matches_label_selector,
    metadata,
    spec,
    text,
)
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Parts, annotation, any_of, changed, listed
from kube.runtime.status import StatusWriter

_LONGEST_PASS = 180.0
_GARDEN = "garden"


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.managed_seed_set, context.garden.caches
    loop = ControlLoop(
        "managedseedset",
        kind=MANAGED_SEED_SETS,
        workers=settings.concurrent_syncs,
        time_limit=min(_LONGEST_PASS, settings.sync_period),
    )
    sets = loop.watch(caches, MANAGED_SEED_SETS_VIEW, enqueue(when=any_of(listed, changed(*_SET_PARTS))))
    owners = _Owners(sets)
    shoots = owners.shoots = loop.watch(
        caches, SHOOTS_VIEW, enqueue_mapped(owners.of_shoot, when=changed(*_SHOOT_PARTS))
    )
    managed_seeds = owners.managed_seeds = loop.watch(
        caches, MANAGED_SEEDS_VIEW, enqueue_mapped(owners.of_replica, when=changed(*_MANAGED_SEED_PARTS))
    )
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue_mapped(owners.of_seed, when=changed("metadata.uid", is_seed_ready)))
    objects = SetObjects(
        client=context.garden.client,
        status=StatusWriter(context.garden.client, sets),
        api=context.api,
        sets=sets,
        shoots=shoots,
        managed_seeds=managed_seeds,
        seeds=seeds,
        clock=context.clock,
    )
    return loop.reconciled_by(
        Reconciler(
            objects=objects,
            keeper=Keeper(client=context.garden.client),
            settings=settings,
            recorder=context.recorder,
            clock=context.clock,
        )
    )


# --- relevant changes


def _owner_uid(shoot: Object) -> object:
    return (controller_of(shoot) or {}).get("uid")


_READ = tuple(map(annotation, (keys.OPERATION, keys.PROTECT_FROM_DELETION, keys.SEED_SET_PRIORITY)))
"""Annotations of replicas."""
_SET_PARTS: Parts = (
    "metadata.uid",
    "metadata.generation",
    "metadata.deletionTimestamp",
    "metadata.finalizers",
)
_SHOOT_PARTS: Parts = (
    "metadata.uid",
    _owner_uid,
    "metadata.labels",
    *_READ,
    shoot_state,
    health_of,
    seeds_of,
)
_MANAGED_SEED_PARTS: Parts = ("metadata.uid", "metadata.labels", *_READ, managed_seed_state)


# --- affected sets


class _Owners:
    """The sets to which replicas belong."""

    shoots: Store[Object]
    managed_seeds: Store[Object]

    def __init__(self, sets: Store[Object]) -> None:
        self._sets = sets

    def of_shoot(self, change: Change[Object]) -> Iterator[Key]:
        for shoot in (change.old, change.new):
            if shoot is None:
                continue
            if controller_of(shoot) is None:
                yield from self._matching(change.key.namespace, labels(shoot))
            for seed in seeds_of(shoot):
                yield from self._of_name(Key(_GARDEN, seed))
        yield from self.of_replica(change)

    def of_replica(self, change: Change[Object]) -> Iterator[Key]:
        for obj in (change.old, change.new):
            yield from _owner(obj)
        yield from self._of_name(change.key)

    def of_seed(self, change: Change[Object]) -> Iterator[Key]:
        yield from self._of_name(Key(_GARDEN, change.key.name))

    def _of_name(self, replica: Key) -> Iterator[Key]:
        yield from _owner(self.shoots.get(replica))
        yield from _owner(self.managed_seeds.get(replica))

    def _matching(self, namespace: str, having: dict[str, str]) -> Iterator[Key]:
        for key, seed_set in self._sets.by_index(BY_NAMESPACE, namespace):
            if matches_label_selector(spec(seed_set).get("selector"), having):
                yield key


def _owner(obj: Object | None) -> Iterator[Key]:
    owner = controller_of(obj) if obj is not None else None
    if obj is not None and owner is not None and owner.get("kind") == MANAGED_SEED_SETS.kind:
        yield Key(text(metadata(obj).get("namespace")), text(owner.get("name")))
