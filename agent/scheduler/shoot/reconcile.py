"""One pass over a Shoot that waits for a Seed: the decision, and the writes that follow.

    a Seed fits    its place is taken in memory, the Shoot is bound, an Event reports it; if the answer to the binding
                   is lost, the Event follows when the cache shows the Shoot on that Seed
    none fits      status and an Event report why, unless they do already; the Shoot waits until something changes
    refused        as if none fits, and tried again with back-off: admission knows more than the caches

A decision and the place that it takes are one step, between which nothing else runs; so workers do not take the same
place, however late the caches observe it. A failure reported in the status is removed after the binding.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent.scheduler.shoot import metrics
from agent.scheduler.shoot.assumed import Assumed
from agent.scheduler.shoot.views import BY_SEED
from gardenapi.api import GardenApi
from gardener.api.garden import SHOOTS
from gardener.garden.profiles import profile_of
from gardener.garden.scheduling import (
    Decision,
    RegionConfig,
    SeedCandidates,
    SeedInfo,
    Strategy,
    decide,
    failed_to_schedule,
    reports_failure,
    waits,
)
from gardener.garden.shoots import last_operation
from kube.clock import format_time
from kube.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerFailure,
    Unreachable,
    refusal_of,
)
from kube.objects import Key, Object, key, spec, text
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, Requeue, RequeueAfter, Result
from kube.runtime.events import EventRecorder, EventType
from kube.runtime.presence import present
from kube.runtime.priorities import CHANGE
from kube.runtime.queue import WorkQueue
from kube.runtime.status import StatusWriter

_REPORTER = "shoot-scheduler"
LONGEST_WAIT = 300.0
"""Maximum number of seconds until the next pass over a waiting Shoot, even if nothing is known to have changed."""

_OVERTAKEN = (Conflict, NotFound)
"""The Shoot has changed, or gone, since it was cached; the next pass uses its present state."""
_REFUSALS = (BadRequest, Forbidden, Invalid)
_UNCERTAIN = (ServerFailure, Unreachable)
"""The outcome of the write is unknown."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Waiting:
    """Shoots without a fitting Seed, counted in the metrics: they are reconciled again when something changes."""

    def __init__(self, queue: WorkQueue[Key]) -> None:
        self._queue = queue
        self._lacks_room: dict[Key, bool] = {}
        metrics.pending_shoots.labels(metrics.NO_ROOM).set_function(lambda: sum(self._lacks_room.values()))
        metrics.pending_shoots.labels(metrics.NO_FIT).set_function(
            lambda: len(self._lacks_room) - sum(self._lacks_room.values())
        )

    def add(self, shoot: Key, *, lacks_room: bool) -> None:
        self._lacks_room[shoot] = lacks_room

    def remove(self, shoot: Key) -> None:
        self._lacks_room.pop(shoot, None)

    def wake(self) -> None:
        """Reconcile the Shoots after a change that decisions depend on."""
        for shoot in self._lacks_room:
            self._queue.add(shoot, CHANGE)

    def wake_for_room(self) -> None:
        for shoot, lacks_room in self._lacks_room.items():
            if lacks_room:
                self._queue.add(shoot, CHANGE)

    async def close(self) -> None:
        self._lacks_room.clear()


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    api: GardenApi
    status: StatusWriter
    recorder: EventRecorder
    shoots: Store[Object]
    seeds: Store[SeedInfo]
    profiles: dict[Resource, Store[Object]]
    region_configs: Callable[[], list[RegionConfig]]
    strategy: Strategy
    grace: timedelta
    assumed: Assumed
    waiting: Waiting
    clock: Callable[[], datetime]
    unconfirmed: dict[Key, set[str]] = field(default_factory=dict)
    """Seeds of bindings with unknown outcome."""

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or not waits(shoot):
            self.waiting.remove(key)
            written = self.unconfirmed.pop(key, ())
            if shoot is None:
                return Done()
            if (seed := text(spec(shoot).get("seedName"))) in written:
                self._report_binding(shoot, seed)
            return await self._clear(shoot)
        decision = await self._decide(shoot)
        if decision.seed:
            self.assumed.take(shoot, decision.seed)
            self.waiting.remove(key)
            return await self._bind(shoot, decision.seed)
        self.waiting.add(key, lacks_room=decision.lacks_room)
        self._count(metrics.UNSCHEDULABLE)
        return await self._report(shoot, decision.message)

    # --- deciding

    async def _decide(self, shoot: Object) -> Decision:
        resource, name = profile_of(spec(shoot))
        place = Key(key(shoot).namespace if resource.namespaced else "", name)
        profile = await present(self.client, self.profiles[resource], place)
        began = time.perf_counter()
        garden = SeedCandidates(
            seeds=sorted((seed for _, seed in self.seeds.items()), key=lambda seed: seed.name),
            usage=self._usage,
            now=self.clock(),
            region_configs=self.region_configs(),
            strategy=self.strategy,
            grace=self.grace,
        )
        decision = decide(shoot, profile, garden)
        metrics.duration_seconds.observe(time.perf_counter() - began)
        excluded = Counter(exclusion.by.value for exclusion in decision.excluded.values())
        for stage, count in excluded.items():
            metrics.filtered_seeds_total.labels(stage).inc(count)
        log.info(
            "Made a scheduling decision for a Shoot",
            seed=decision.seed,
            reason=decision.message,
            seeds=len(garden.seeds),
            excluded=dict(excluded),
        )
        return decision

    def _usage(self, seed: str) -> int:
        return self.shoots.count(BY_SEED, seed) + self.assumed.count(seed)

    # --- writing

    async def _bind(self, shoot: Object, seed: str) -> Result:
        try:
            bound = await self.api.bind(shoot, seed)
        except KubeError as error:
            self._count(metrics.REFUSED if isinstance(error, _REFUSALS) else metrics.FAILED)
            if isinstance(error, _UNCERTAIN):
                self.unconfirmed.setdefault(key(shoot), set()).add(seed)
            else:
                self.assumed.give_back(shoot, seed)
            if isinstance(error, _OVERTAKEN):
                return Requeue()
            if isinstance(error, _REFUSALS):
                await self._report(shoot, refusal_of(error))
            raise
        self.unconfirmed.pop(key(shoot), None)
        self.shoots.observe(bound)
        self.assumed.seen(shoot, [seed])
        self._report_binding(shoot, seed)
        return await self._clear(bound)

    def _report_binding(self, shoot: Object, seed: str) -> None:
        self._count(metrics.SCHEDULED)
        self._event(shoot, "Normal", "SchedulingSuccessful", f"Scheduled to seed '{seed}'")

    async def _report(self, shoot: Object, reason: str) -> Result:
        """Report the reason in status and Event, unless they have it already."""
        message = failed_to_schedule(reason)
        last = last_operation(shoot)
        if reports_failure(shoot) and last.get("description") == message:
            return RequeueAfter(LONGEST_WAIT)
        operation = {
            "type": "Create",
            "state": "Pending",
            "progress": last.get("progress", 0),
            "description": message,
            "lastUpdateTime": format_time(self.clock()),
        }
        await self.status.write(shoot, {"lastOperation": operation})
        self._event(shoot, "Warning", "SchedulingFailed", message)
        return RequeueAfter(LONGEST_WAIT)

    async def _clear(self, shoot: Object) -> Result:
        """Remove the reported failure from a Shoot that has a Seed."""
        if not spec(shoot).get("seedName") or not reports_failure(shoot):
            return Done()
        await self.status.write(shoot, {"lastOperation": None})
        return Done()

    def _event(self, shoot: Object, type_: EventType, reason: str, message: str) -> None:
        self.recorder.event({**SHOOTS.type_meta, **shoot}, type_, reason, message, reporter=_REPORTER)

    def _count(self, result: str) -> None:
        metrics.attempts_total.labels(result).inc()
