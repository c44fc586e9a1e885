"""The controller `shoot-maintenance`: it looks at a Shoot at a random time of its window, each day.

It looks at once if a user asks for maintenance, and if the window changes, which may include the present time then.
"""

import random
from collections.abc import Callable
from datetime import datetime

from agent.controller_manager.common.api import CLOUD_PROFILES_VIEW, NAMESPACED_CLOUD_PROFILES_VIEW, SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.maintenance.reconcile import Reconciler
from gardener.api.garden import SHOOTS
from gardener.garden.maintenance.plan import Restarts
from gardener.garden.maintenance.schedule import Uniform, is_asked_for, seconds_at_start, time_window
from kube.objects import Object, is_deleting
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, EventHandler, Queue
from kube.runtime.queue import CHANGE, RESYNC
from kube.runtime.status import StatusWriter


def declare(context: Context, uniform: Uniform = random.uniform) -> ControlLoop:
    settings, caches = context.config.controllers.shoot_maintenance, context.garden.caches
    loop = ControlLoop("shoot-maintenance", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(caches, SHOOTS_VIEW, handler(context.clock, uniform))
    profiles = {
        view.resource: loop.watch(caches, view) for view in (CLOUD_PROFILES_VIEW, NAMESPACED_CLOUD_PROFILES_VIEW)
    }
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            status=StatusWriter(context.garden.client, shoots),
            shoots=shoots,
            profiles=profiles,
            recorder=context.recorder,
            clock=context.clock,
            uniform=uniform,
            restarts=Restarts(
                control_plane=settings.enable_shoot_control_plane_restarter,
                core_addons=settings.enable_shoot_core_addon_restarter,
            ),
            dry_run=context.dry_run,
        )
    )


def handler(clock: Callable[[], datetime], uniform: Uniform) -> EventHandler[Object]:
    def handle(queue: Queue, change: Change[Object]) -> None:
        old, new = change.old, change.new
        if new is None or is_deleting(new):
            return
        if old is None and change.initial:
            queue.add_after(change.key, seconds_at_start(new, clock(), uniform), RESYNC)
        elif old is None or _matters(old, new):
            queue.add(change.key, CHANGE)

    return handle


def _matters(old: Object, new: Object) -> bool:
    return (is_asked_for(new) and not is_asked_for(old)) or time_window(old) != time_window(new)
