"""The controller `event`: Events that are not about Shoots are deleted some time after they were told last.

It runs only if the configuration says how long. The API server deletes Events as well (`--event-ttl`), so that has to
be longer.
"""

from datetime import timedelta

from agent.controller_manager.context import Context
from agent.controller_manager.event.reconcile import Reconciler
from agent.controller_manager.event.rules import last_seen
from config.controller_manager.controllers import Event
from kube.cache import View
from kube.loop import ControlLoop, enqueue, exists
from kube.resources import EVENTS

_EVENTS_VIEW = View(EVENTS, last_seen, streams=True)


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.event or Event(), context.garden
    loop = ControlLoop("event", kind=EVENTS, workers=settings.concurrent_syncs)
    events = loop.watch(garden.caches, _EVENTS_VIEW, enqueue(when=exists))
    lifetime = timedelta(seconds=settings.ttl_non_shoot_events)
    return loop.reconciled_by(Reconciler(client=garden.client, events=events, lifetime=lifetime, clock=context.clock))
