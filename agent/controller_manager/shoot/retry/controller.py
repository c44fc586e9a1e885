"""The controller `shoot-retry`: asks again for operations that failed because of a rate limit."""

from datetime import timedelta

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.shoot.retry.reconcile import Reconciler
from agent.controller_manager.shoot.retry.rules import progress
from gardener.api.garden import SHOOTS
from kube.objects import Object
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, enqueue


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_retry, context.garden
    loop = ControlLoop("shoot-retry", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=_has_progressed))
    return loop.reconciled_by(
        Reconciler(
            api=context.api,
            shoots=shoots,
            period=timedelta(seconds=settings.retry_period),
            jitter=settings.retry_jitter_period,
            clock=context.clock,
        )
    )


def _has_progressed(change: Change[Object]) -> bool:
    if change.initial or change.old is None or change.new is None:
        return True
    return progress(change.old) != progress(change.new)
