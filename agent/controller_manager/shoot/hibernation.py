"""The controller `shoot-hibernation`: carries out the hibernation schedules of a Shoot when the next one is due.

It checks at once if the schedules change, and when a cluster can be hibernated again that could not be before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from gardener.api.garden import SHOOTS
from gardener.distribution import version
from gardener.garden.hibernation import (
    Activation,
    Entry,
    due,
    earliest,
    entries,
    gives_up,
    is_possible,
    schedules,
    upcoming,
)
from kube.clock import format_time
from kube.errors import Forbidden, Invalid, NotFound, refusal_of
from kube.objects import Key, Object, is_deleting
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.edits import edit
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import Predicate, all_of, changed, now
from kube.runtime.status import StatusWriter

triggers: Predicate[Object] = all_of(now(schedules), changed(schedules, is_possible))
_REPORTER = "shoot-hibernation-controller"
_HIBERNATED = ("Hibernated", "HibernationFailed", "Hibernating cluster due to schedule")
_WOKEN_UP = ("WokenUp", "WakeUpFailed", "Waking up cluster due to schedule")
_INVALID = "InvalidHibernationSchedule"
_AFTER = 0.1
"""Delay after the time of a schedule, in seconds."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    settings = context.config.controllers.shoot_hibernation
    loop = ControlLoop("shoot-hibernation", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(context.garden.caches, SHOOTS_VIEW, enqueue(when=triggers))
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            status=StatusWriter(context.garden.client, shoots),
            shoots=shoots,
            recorder=context.recorder,
            clock=context.clock,
            deadline=timedelta(seconds=settings.trigger_deadline_duration),
            version=version(),
        )
    )


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    status: StatusWriter
    shoots: Store[Object]
    recorder: EventRecorder
    clock: Callable[[], datetime]
    deadline: timedelta
    """Maximum delay after which an action is still done."""
    version: str
    """Version of this program."""

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or is_deleting(shoot):
            return Done()
        try:
            scheduled = entries(shoot)
        except ValueError as error:
            self.recorder.event(
                shoot, "Warning", _INVALID, f"Invalid hibernation schedules: {error}", reporter=_REPORTER
            )
            log.warning("The hibernation schedules of the Shoot are invalid; correct them", error=str(error))
            return Done()
        now = self.clock()
        if not gives_up(shoot, version=self.version):
            activation = due(scheduled, after=earliest(shoot, now=now, deadline=self.deadline), now=now)
            if activation is not None:
                await self._carry_out(shoot, activation, now)
        return self._wait(scheduled)

    async def _carry_out(self, shoot: Object, activation: Activation, now: datetime) -> None:
        reason, refused, text = _HIBERNATED if activation.hibernates else _WOKEN_UP
        try:
            shoot = await self._set(shoot, activation)
            # Written even without a change: the schedule must not fire again after a manual wake-up.
            await self.status.write(shoot, {"lastHibernationTriggerTime": format_time(now)})
        except NotFound:
            return
        except (Forbidden, Invalid) as error:
            # Not retried: users have to remove the obstacle.
            self.recorder.event(
                shoot, "Warning", refused, f"{text} was refused: {refusal_of(error)}", reporter=_REPORTER
            )
            log.warning("The change required by the hibernation schedule was rejected", error=str(error))
            return
        self.recorder.event(shoot, "Normal", reason, text, reporter=_REPORTER)
        log.info(text, scheduled_for=format_time(activation.moment))

    async def _set(self, shoot: Object, activation: Activation) -> Object:
        wanted = activation.hibernates

        def change(live: Object) -> Object | None:
            is_done = at(live, "spec", "hibernation", "enabled") is wanted
            return None if is_done else {"spec": {"hibernation": {"enabled": wanted}}}

        written = await edit(self.client, SHOOTS, shoot, change)
        self.shoots.observe(written)
        return written

    def _wait(self, scheduled: Sequence[Entry]) -> Result:
        now = self.clock()
        following = upcoming(scheduled, now=now)
        if following is None:
            return Done()
        return RequeueAfter((following.moment - now).total_seconds() + _AFTER)
