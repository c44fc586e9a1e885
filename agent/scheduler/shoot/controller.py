"""The controller `shoot`.

Shoots       that begin to wait, and waiting ones whose spec changes
the rest     other inputs of decisions; a change leads to passes over all waiting Shoots

    Seeds, cloud profiles, region ConfigMaps    all of them
    Shoots that leave a Seed                    those that only lack room

A change of its own status leads to no pass over a waiting Shoot, so nothing is tried without a reason.
"""

from datetime import timedelta
from functools import partial
from typing import Any

from agent.scheduler.context import Context
from agent.scheduler.shoot.assumed import Assumed
from agent.scheduler.shoot.reconcile import LONGEST_WAIT, Reconciler, Waiting
from agent.scheduler.shoot.views import (
    CLOUD_PROFILES_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    REGION_CONFIGS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES, SHOOTS
from gardener.garden.scheduling import RegionConfig, Strategy, reports_failure, waits
from gardener.garden.shoots import seeds_of
from kube.objects import Object, spec
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Change, Store
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop, Queue
from kube.runtime.predicates import Predicate, changed
from kube.runtime.priorities import CHANGE, RESYNC
from kube.runtime.status import StatusWriter

_is_news: Predicate[Any] = changed()


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.schedulers.shoot, context.garden.caches
    loop = ControlLoop("shoot", kind=SHOOTS, workers=settings.concurrent_syncs, max_backoff=LONGEST_WAIT)
    waiting = Waiting(loop.queue)
    assumed = Assumed(on_free=waiting.wake_for_room)
    shoots = loop.watch(caches, SHOOTS_VIEW, partial(_of_shoot, waiting, assumed))
    wake = partial(_wake, waiting)
    seeds = loop.watch(caches, SEEDS_VIEW, wake)
    profiles = {
        CLOUD_PROFILES: loop.watch(caches, CLOUD_PROFILES_VIEW, wake),
        NAMESPACED_CLOUD_PROFILES: loop.watch(caches, NAMESPACED_CLOUD_PROFILES_VIEW, wake),
    }
    strategy = Strategy(settings.candidate_determination_strategy)
    regions = _RegionConfigs(loop, context, waiting) if strategy == Strategy.MINIMAL_DISTANCE else None
    loop.on_close(assumed.close, waiting.close)
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            api=context.api,
            status=StatusWriter(context.garden.client, shoots),
            recorder=context.recorder,
            shoots=shoots,
            seeds=seeds,
            profiles=profiles,
            region_configs=regions.all if regions else list,
            strategy=strategy,
            grace=timedelta(seconds=settings.progressing_seed_grace_period),
            assumed=assumed,
            waiting=waiting,
            clock=context.clock,
        )
    )


def _wake(waiting: Waiting, _queue: Queue, change: Change[Any]) -> None:
    if _is_news(change):
        waiting.wake()


def _of_shoot(waiting: Waiting, assumed: Assumed, queue: Queue, change: Change[Object]) -> None:
    old, new = change.old, change.new
    on = seeds_of(new) if new is not None else []
    if new is not None:
        assumed.seen(new, on)
    if old is not None and not set(seeds_of(old)) <= set(on):
        waiting.wake_for_room()
    if _is_trigger(change):
        queue.add(change.key, RESYNC if change.initial else CHANGE)


def _is_trigger(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    did_wait, does_wait = old is not None and waits(old), new is not None and waits(new)
    if not does_wait:
        return did_wait or (new is not None and reports_failure(new))
    return old is None or not did_wait or change.initial or spec(old) != spec(new or {})


class _RegionConfigs:
    """Region ConfigMaps, which only one strategy needs."""

    def __init__(self, loop: ControlLoop, context: Context, waiting: Waiting) -> None:
        self._waiting = waiting
        self._recorder: EventRecorder = context.recorder
        self._store: Store[RegionConfig] = loop.watch(context.garden.caches, REGION_CONFIGS_VIEW, self._handle)

    def all(self) -> list[RegionConfig]:
        return [config for _, config in self._store.items()]

    def _handle(self, _queue: Queue, change: Change[RegionConfig]) -> None:
        if not _is_news(change):
            return
        self._waiting.wake()
        if change.new is not None:
            self._report_others(change.new)

    def _report_others(self, config: RegionConfig) -> None:
        """Report that several ConfigMaps name a cloud profile; the first counts."""
        for profile in config.profiles:
            counting = min(each.key for each in self.all() if profile in each.profiles)
            if counting != config.key:
                name = {"namespace": config.key.namespace, "name": config.key.name}
                about = {**CONFIG_MAPS.type_meta, **name}
                message = f"Ignored for cloud profile {profile}, for which ConfigMap {counting} is used"
                self._recorder.event(about, "Warning", "RegionConfigIgnored", message)
