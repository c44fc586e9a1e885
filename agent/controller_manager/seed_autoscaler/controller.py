"""The controller `seedautoscaler`: how many Seeds a set has follows how full they are, and who waits for one.

SeedAutoscalers             that are new or changed, or lose another one with the same set
ManagedSeedSets             that change in what counts for scaling
replicas                    Shoots and ManagedSeeds of a set, if they go, or the order of removal changes
Shoots                      that come onto a Seed of a set, leave it, or wait for any Seed
Seeds, cloud profiles       in what the scheduler reads: all

Changes are gathered for a moment, as Shoots often come in numbers. A timer runs only while one is needed: for a window,
a cool-down, the grace period of a Shoot, or the next query of usage that is measured elsewhere.
"""

from collections.abc import Callable, Hashable, Iterator
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
from agent.controller_manager.seed_autoscaler.garden import Garden
from agent.controller_manager.seed_autoscaler.prometheus import Prometheus
from agent.controller_manager.seed_autoscaler.reconcile import Reconciler
from gardener import keys
from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS
from gardener.garden.domains import NAMESPACE
from gardener.garden.managed_seed_sets import health_of, is_seed_ready, managed_seed_state, shoot_state
from gardener.garden.scheduling import RegionConfig, SeedInfo, Strategy, reports_failure, waits
from gardener.garden.scheduling.regions import PURPOSE, REGION_CONFIG
from gardener.garden.shoots import seeds_of
from kube.objects import Key, Object, annotations, controller_of, is_deleting, key, mapping, metadata, text, uid
from kube.paths import at
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue_mapped
from kube.runtime.predicates import Predicate
from kube.runtime.status import StatusWriter

_GATHER_SECONDS = 5.0
_READ = (keys.PROTECT_FROM_DELETION, keys.SEED_SET_PRIORITY)
"""Annotations of replicas."""

REGION_CONFIGS_VIEW = View(CONFIG_MAPS, RegionConfig.of, label_selector=f"{PURPOSE}={REGION_CONFIG}", most=2 << 20)


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed_autoscaler, context.garden.caches
    loop = ControlLoop(
        "seedautoscaler",
        kind=SEED_AUTOSCALERS,
        workers=settings.concurrent_syncs,
        max_backoff=settings.sync_period,
    )
    concerned = _Concerned()
    autoscalers = concerned.autoscalers = loop.watch(
        caches, SEED_AUTOSCALERS_VIEW, enqueue_mapped(concerned.by_autoscaler, when=_differs(_of_autoscaler))
    )

    def watch(view: View[Object], keys_of: Callable[[Change[Object]], Iterator[Key]], facts: Facts) -> Store[Object]:
        return loop.watch(caches, view, enqueue_mapped(keys_of, when=_differs(facts), after=_GATHER_SECONDS))

    sets = watch(MANAGED_SEED_SETS_VIEW, concerned.by_set, _of_set)
    managed_seeds = watch(MANAGED_SEEDS_VIEW, concerned.by_replica, _of_managed_seed)
    shoots = watch(SHOOTS_VIEW, concerned.by_shoot, _of_shoot)
    seeds = watch(SEEDS_VIEW, concerned.all, _of_seed)
    profiles = watch(CLOUD_PROFILES_VIEW, concerned.all, _of_profile)
    own_profiles = watch(NAMESPACED_CLOUD_PROFILES_VIEW, concerned.all, _of_own_profile)
    concerned.shoots = shoots
    period = timedelta(seconds=settings.sync_period)
    strategy = Strategy(settings.candidate_determination_strategy)
    regions = None
    if strategy is Strategy.MINIMAL_DISTANCE:
        regions = loop.watch(caches, REGION_CONFIGS_VIEW, enqueue_mapped(concerned.all, after=_GATHER_SECONDS))
    garden = Garden(
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
            garden=garden,
            statuses=StatusWriter(context.garden.client, autoscalers),
            recorder=context.recorder,
            clock=context.clock,
            sources=[Prometheus(each, period=period) for each in settings.resources],
        )
    )


# --- what counts of a change

Facts = Callable[[Object], Hashable]


def _differs(facts: Facts) -> Predicate[Object]:
    """Also for what comes and goes."""

    def predicate(change: Change[Object]) -> bool:
        if change.old is None or change.new is None:
            return True
        if change.initial:
            return facts is _of_autoscaler
        return facts(change.old) != facts(change.new)

    return predicate


def _of_autoscaler(autoscaler: Object) -> Hashable:
    paused = annotations(autoscaler).get(keys.AUTOSCALING_PAUSED)
    return uid(autoscaler), metadata(autoscaler).get("generation"), is_deleting(autoscaler), paused


def _of_set(seed_set: Object) -> Hashable:
    status = mapping(seed_set.get("status"))
    counts = ("observedGeneration", "replicas", "readyReplicas", "currentRevision", "updateRevision")
    pending = mapping(status.get("pendingReplica"))
    return (
        uid(seed_set),
        metadata(seed_set).get("generation"),
        is_deleting(seed_set),
        *(status.get(each) for each in counts),
        *(pending.get(each) for each in ("name", "reason")),
    )


def _of_managed_seed(managed_seed: Object) -> Hashable:
    read = tuple(annotations(managed_seed).get(name) for name in _READ)
    return uid(managed_seed), managed_seed_state(managed_seed), read


def _of_shoot(shoot: Object) -> Hashable:
    owner = controller_of(shoot) or {}
    return (
        uid(shoot),
        is_deleting(shoot),
        tuple(seeds_of(shoot)),
        waits(shoot) and reports_failure(shoot),
        owner.get("uid"),
        (shoot_state(shoot), health_of(shoot), *(annotations(shoot).get(name) for name in _READ)) if owner else None,
    )


def _of_seed(seed: Object) -> Hashable:
    info = SeedInfo.of(seed)
    amounts = tuple(str(at(seed, "status", field)) for field in ("allocatable", "capacity"))
    return uid(seed), is_seed_ready(seed), amounts, tuple(info.labels.items()), info.problem, info.taints, info.networks


def _of_profile(profile: Object) -> Hashable:
    return str(at(profile, "spec", "seedSelector"))


def _of_own_profile(profile: Object) -> Hashable:
    return str(at(profile, "spec", "parent"))


# --- whom it concerns


class _Concerned:
    """The SeedAutoscalers for which a change may matter."""

    autoscalers: Store[Object]
    shoots: Store[Object]

    def all(self, _change: Change[Any]) -> Iterator[Key]:
        yield from self.autoscalers.all_keys()

    def by_autoscaler(self, change: Change[Object]) -> Iterator[Key]:
        """With others of the same set."""
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
