"""The controller `shoot-statuslabel`: keeps the labels of Shoots that follow from their status."""

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.status_label.reconcile import Reconciler
from agent.controller_manager.shoot.status_label.rules import needed_labels
from gardener.garden.resources import SHOOTS
from kube.cache import Change
from kube.loop import ControlLoop, enqueue
from kube.objects import Object


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_status_label, context.garden
    loop = ControlLoop("shoot-statuslabel", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=_lacks_labels))
    return loop.reconciled_by(Reconciler(client=garden.client, shoots=shoots))


def _lacks_labels(change: Change[Object]) -> bool:
    return change.new is not None and bool(needed_labels(change.new))
