"""The controller `shoot-hibernation`: it looks at a Shoot with schedules when the next of them is due.

It looks at once if the schedules change, and when the cluster may be hibernated again that could not be.
"""

from datetime import timedelta

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.hibernation.reconcile import Reconciler
from gardener.api.garden import SHOOTS
from gardener.garden.hibernation import is_possible, schedules
from kube.objects import Object
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.status import StatusWriter
from process.version import version


def declare(context: Context) -> ControlLoop:
    settings = context.config.controllers.shoot_hibernation
    loop = ControlLoop("shoot-hibernation", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(context.garden.caches, SHOOTS_VIEW, enqueue(when=concerns_schedules))
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


def concerns_schedules(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    if new is None or not schedules(new):
        return False
    return old is None or schedules(old) != schedules(new) or is_possible(old) != is_possible(new)
