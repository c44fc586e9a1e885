"""The controller `managedseedset`: a set is looked at when one of its replicas changes in what counts for it.

Shoots and ManagedSeeds name their set as owner, Seeds are found by the name of the replica. A Shoot that comes onto a
Seed, or leaves it, concerns the set of that Seed: it may have waited for one that is empty.
"""

from collections.abc import Callable, Hashable, Iterator

from agent.controller_manager.common.api import (
    BY_NAMESPACE,
    MANAGED_SEED_SETS_VIEW,
    MANAGED_SEEDS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.context import Context
from agent.controller_manager.managed_seed_set.garden import Garden
from agent.controller_manager.managed_seed_set.history import Keeper
from agent.controller_manager.managed_seed_set.reconcile import Reconciler
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS
from gardener.garden.managed_seed_sets import health_of, is_seed_ready, managed_seed_state, shoot_state
from gardener.garden.shoots import seeds_of
from kube.objects import (
    Key,
    Object,
    annotations,
    controller_of,
    finalizers,
    is_deleting,
    labels,
    matches_label_selector,
    metadata,
    spec,
    text,
    uid,
)
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate
from kube.runtime.status import StatusWriter

_LONGEST_PASS = 180.0
_GARDEN = "garden"
_READ = (keys.OPERATION, keys.PROTECT_FROM_DELETION, keys.SEED_SET_PRIORITY)
"""Annotations of replicas."""


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.managed_seed_set, context.garden.caches
    loop = ControlLoop(
        "managedseedset",
        kind=MANAGED_SEED_SETS,
        workers=settings.concurrent_syncs,
        time_limit=min(_LONGEST_PASS, settings.sync_period),
    )
    sets = loop.watch(caches, MANAGED_SEED_SETS_VIEW, enqueue(when=_differs(_of_set)))
    owners = _Owners(sets)
    shoots = owners.shoots = loop.watch(caches, SHOOTS_VIEW, enqueue_mapped(owners.of_shoot, when=_differs(_of_shoot)))
    managed_seeds = owners.managed_seeds = loop.watch(
        caches, MANAGED_SEEDS_VIEW, enqueue_mapped(owners.of_replica, when=_differs(_of_managed_seed))
    )
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue_mapped(owners.of_seed, when=_differs(_of_seed)))
    garden = Garden(
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
            garden=garden,
            keeper=Keeper(client=context.garden.client),
            settings=settings,
            recorder=context.recorder,
            clock=context.clock,
        )
    )


# --- what counts of a change


def _differs(facts: Callable[[Object], Hashable]) -> Predicate[Object]:
    """Also for what comes and goes; a set is looked at in resyncs, too."""

    def predicate(change: Change[Object]) -> bool:
        if change.old is None or change.new is None:
            return True
        if change.initial:
            return facts is _of_set
        return facts(change.old) != facts(change.new)

    return predicate


def _of_set(seed_set: Object) -> Hashable:
    return (
        uid(seed_set),
        metadata(seed_set).get("generation"),
        is_deleting(seed_set),
        tuple(finalizers(seed_set)),
    )


def _of_shoot(shoot: Object) -> Hashable:
    owner = controller_of(shoot) or {}
    return (
        uid(shoot),
        owner.get("uid"),
        tuple(sorted(labels(shoot).items())),
        tuple(annotations(shoot).get(name) for name in _READ),
        shoot_state(shoot),
        health_of(shoot),
        tuple(seeds_of(shoot)),
    )


def _of_managed_seed(managed_seed: Object) -> Hashable:
    return (
        uid(managed_seed),
        tuple(sorted(labels(managed_seed).items())),
        tuple(annotations(managed_seed).get(name) for name in _READ),
        managed_seed_state(managed_seed),
    )


def _of_seed(seed: Object) -> Hashable:
    return uid(seed), is_seed_ready(seed)


# --- whom it concerns


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
