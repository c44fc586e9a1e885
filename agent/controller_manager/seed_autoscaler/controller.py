"""The controller `seedautoscaler`: adapts the number of Seeds of a set to their usage and to waiting Shoots.

SeedAutoscalers             that are new or changed, or lose another one with the same set
ManagedSeedSets             that change in fields that count for scaling
replicas                    Shoots and ManagedSeeds of a set, if they go, or the order of removal changes
Shoots                      that come onto a Seed of a set, leave it, or wait for any Seed
Seeds, cloud profiles       in fields that the scheduler reads: all

Changes are gathered for a moment, as Shoots often come in numbers. A timer runs only while one is needed: for a window,
a cool-down, the grace period of a Shoot, or the next query of usage that is measured elsewhere.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from agent.controller_manager.common.api import (
    BY_TARGET,
    CLOUD_PROFILES_VIEW,
    MANAGED_SEED_SETS_VIEW,
    MANAGED_SEEDS_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    SEED_AUTOSCALERS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
    target_of,
)
from agent.controller_manager.context import Context
from agent.controller_manager.seed_autoscaler.inputs import ScalingInputs
from agent.controller_manager.seed_autoscaler.prometheus import Prometheus
from agent.controller_manager.seed_autoscaler.reconcile import Reconciler
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS
from gardener.garden.domains import NAMESPACE
from gardener.garden.managed_seed_sets import health_of, is_seed_ready, managed_seed_state, shoot_state
from gardener.garden.scheduling import RegionConfig, SeedInfo, Strategy, reports_failure, waits
from gardener.garden.scheduling.regions import PURPOSE, REGION_CONFIG
from gardener.garden.shoots import seeds_of
from kube.objects import Key, Object, annotations, controller_of, key, text
from kube.paths import mapping_at
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue_mapped
from kube.runtime.predicates import Part, Parts, annotation, any_of, changed, listed
from kube.runtime.status import StatusWriter

_GATHER_SECONDS = 5.0
_READ = (keys.PROTECT_FROM_DELETION, keys.SEED_SET_PRIORITY)
"""Annotations of replicas."""

REGION_CONFIGS_VIEW = View(
    CONFIG_MAPS,
    RegionConfig.of,
    label_selector=f"{PURPOSE}={REGION_CONFIG}",
    namespace=NAMESPACE,
    most=2 << 20,
)
"""ConfigMaps of operators: members of Projects may label their own as they like."""

Keys = Callable[[Change[Object]], Iterator[Key]]


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed_autoscaler, context.garden.caches
    loop = ControlLoop(
        "seedautoscaler",
        kind=SEED_AUTOSCALERS,
        workers=settings.concurrent_syncs,
        max_backoff=settings.sync_period,
    )
    scalers = _Scalers()
    autoscalers = scalers.autoscalers = loop.watch(
        caches,
        SEED_AUTOSCALERS_VIEW,
        enqueue_mapped(scalers.by_autoscaler, when=any_of(listed, changed(*_AUTOSCALER_PARTS))),
    )

    def watch(view: View[Object], keys_of: Keys, *parts: Part[Object]) -> Store[Object]:
        return loop.watch(caches, view, enqueue_mapped(keys_of, when=changed(*parts), after=_GATHER_SECONDS))

    sets = watch(MANAGED_SEED_SETS_VIEW, scalers.by_set, *_SET_PARTS)
    managed_seeds = watch(MANAGED_SEEDS_VIEW, scalers.by_replica, *_MANAGED_SEED_PARTS)
    shoots = watch(SHOOTS_VIEW, scalers.by_shoot, *_SHOOT_PARTS)
    seeds = watch(SEEDS_VIEW, scalers.all, *_SEED_PARTS)
    profiles = watch(CLOUD_PROFILES_VIEW, scalers.all, "spec.seedSelector")
    own_profiles = watch(NAMESPACED_CLOUD_PROFILES_VIEW, scalers.all, "spec.parent")
    scalers.shoots = shoots
    period = timedelta(seconds=settings.sync_period)
    strategy = Strategy(settings.candidate_determination_strategy)
    regions = None
    if strategy is Strategy.MINIMAL_DISTANCE:
        regions = loop.watch(caches, REGION_CONFIGS_VIEW, enqueue_mapped(scalers.all, after=_GATHER_SECONDS))
    inputs = ScalingInputs(
        client=context.garden.client,
        autoscalers=autoscalers,
        sets=sets,
        shoots=shoots,
        managed_seeds=managed_seeds,
        seeds=seeds,
        profiles=profiles,
        own_profiles=own_profiles,
        regions=regions,
        strategy=strategy,
    )
    return loop.reconciled_by(
        Reconciler(
            inputs=inputs,
            statuses=StatusWriter(context.garden.client, autoscalers),
            recorder=context.recorder,
            clock=context.clock,
            sources=[Prometheus(each, period=period) for each in settings.resources],
        )
    )


# --- relevant changes


def _pending_replica(seed_set: Object) -> object:
    pending = mapping_at(seed_set, "status", "pendingReplica")
    return pending.get("name"), pending.get("reason")


def _replica_state(shoot: Object) -> object:
    """State of a Shoot that belongs to a set."""
    owner = controller_of(shoot)
    read = (annotations(shoot).get(name) for name in _READ)
    return (owner.get("uid"), shoot_state(shoot), health_of(shoot), *read) if owner else None


def _waits_in_vain(shoot: Object) -> bool:
    return waits(shoot) and reports_failure(shoot)


def _scheduling_inputs(seed: Object) -> object:
    info = SeedInfo.of(seed)
    return info.labels, info.problem, info.taints, info.networks


_AUTOSCALER_PARTS: Parts = (
    "metadata.uid",
    "metadata.generation",
    "metadata.deletionTimestamp",
    annotation(keys.AUTOSCALING_PAUSED),
)
_SET_PARTS: Parts = (
    "metadata.uid",
    "metadata.generation",
    "metadata.deletionTimestamp",
    *(f"status.{field}" for field in ("observedGeneration", "replicas", "readyReplicas")),
    *(f"status.{field}" for field in ("currentRevision", "updateRevision")),
    _pending_replica,
)
_MANAGED_SEED_PARTS: Parts = ("metadata.uid", managed_seed_state, *map(annotation, _READ))
_SHOOT_PARTS: Parts = (
    "metadata.uid",
    "metadata.deletionTimestamp",
    seeds_of,
    _waits_in_vain,
    _replica_state,
)
_SEED_PARTS: Parts = (
    "metadata.uid",
    is_seed_ready,
    "status.allocatable",
    "status.capacity",
    _scheduling_inputs,
)


# --- affected SeedAutoscalers


class _Scalers:
    """SeedAutoscalers whose decision may change with an object."""

    autoscalers: Store[Object]
    shoots: Store[Object]

    def all(self, _change: Change[Any]) -> Iterator[Key]:
        yield from self.autoscalers.all_keys()

    def by_autoscaler(self, change: Change[Object]) -> Iterator[Key]:
        """The SeedAutoscaler, and others of the same set."""
        yield change.key
        for autoscaler in (change.old, change.new):
            if autoscaler is not None:
                yield from self._of_target(target_of(autoscaler))

    def by_set(self, change: Change[Object]) -> Iterator[Key]:
        yield from self._of_target(change.key)

    def by_replica(self, change: Change[Object]) -> Iterator[Key]:
        for obj in (change.old, change.new):
            yield from self._of_owner(obj)

    def by_shoot(self, change: Change[Object]) -> Iterator[Key]:
        yield from self.by_replica(change)
        for shoot in (change.old, change.new):
            if shoot is None:
                continue
            if waits(shoot):
                yield from self.all(change)
            for seed in seeds_of(shoot):
                yield from self._of_owner(self.shoots.get(Key(NAMESPACE, seed)))

    def _of_owner(self, obj: Object | None) -> Iterator[Key]:
        owner = controller_of(obj) if obj is not None else None
        if obj is not None and owner is not None and owner.get("kind") == MANAGED_SEED_SETS.kind:
            yield from self._of_target(Key(key(obj).namespace, text(owner.get("name"))))

    def _of_target(self, target: Key) -> Iterator[Key]:
        yield from self.autoscalers.keys_by_index(BY_TARGET, target)
