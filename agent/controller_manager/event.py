"""The controller `event`: deletes Events that are not about Shoots some time after their last report.

It runs only if that time is configured. The API server deletes Events as well (`--event-ttl`), so its time must be
longer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.controller_manager.context import Context
from config.controller_manager.controllers import Event
from gardener.api.garden import CORE_GROUP, SHOOTS
from kube.clock import seconds_until, time_or_none
from kube.objects import Key, Object, group_of, mapping, metadata, text
from kube.paths import at
from kube.resources import EVENTS
from kube.runtime.cache import Store, View
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import exists


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.event or Event(), context.garden
    loop = ControlLoop("event", kind=EVENTS, workers=settings.concurrent_syncs)
    events = loop.watch(garden.caches, _EVENTS_VIEW, enqueue(when=exists))
    lifetime = timedelta(seconds=settings.ttl_non_shoot_events)
    reconciler = Reconciler(client=garden.client, events=events, lifetime=lifetime, clock=context.deletion_clock)
    return loop.reconciled_by(reconciler)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """One pass over an Event: delete it, or requeue it for when it is old enough."""

    client: Client
    events: Store[datetime | None]
    lifetime: timedelta
    clock: Callable[[], datetime]

    async def reconcile(self, key: Key) -> Result:
        seen = self.events.get(key)
        if seen is None:
            return Done()
        left = seconds_until(seen + self.lifetime, self.clock(), longest=self.lifetime.total_seconds())
        if left > 0:
            return RequeueAfter(left)
        # One that is repeated at this moment stays.
        version = str(self.events.version(key))
        await self.client.delete_if_exists(EVENTS, key, resource_version=version)
        return Done()


def last_seen(event: Object) -> datetime | None:
    """Return the time of the last report; None for Events of Shoots, which are left alone.

    Events of the newer API have no `lastTimestamp`, and report repetitions in `series`.
    """
    involved = mapping(event.get("involvedObject"))
    if involved.get("kind") == SHOOTS.kind and group_of(text(involved.get("apiVersion"))) == CORE_GROUP:
        return None
    times = (at(event, "series", "lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return time_or_none(next(filter(None, times), metadata(event).get("creationTimestamp")))


_EVENTS_VIEW = View(EVENTS, last_seen, streams=True)
