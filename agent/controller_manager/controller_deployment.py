"""The controller `controllerdeployment`: a ControllerDeployment stays as long as ControllerRegistrations refer to it.

Of ControllerDeployments only metadata are watched; they may contain whole charts.
"""

from functools import partial

from agent.controller_manager.common.api import (
    BY_DEPLOYMENT,
    CONTROLLER_DEPLOYMENTS_VIEW,
    CONTROLLER_REGISTRATIONS_VIEW,
)
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from gardener.api.garden import CONTROLLER_DEPLOYMENTS
from gardener.garden.users import reason
from gardener.keys import DEPLOYMENT_FINALIZER
from kube.objects import Key
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.controller_deployment, context.garden.caches
    loop = ControlLoop("controllerdeployment", kind=CONTROLLER_DEPLOYMENTS, workers=settings.concurrent_syncs)
    deployments = loop.watch(caches, CONTROLLER_DEPLOYMENTS_VIEW, enqueue_unprotected(DEPLOYMENT_FINALIZER))
    registrations = Users(loop, caches, CONTROLLER_REGISTRATIONS_VIEW, BY_DEPLOYMENT)
    return loop.reconciled_by(
        Protection(
            context,
            deployments,
            users=(registrations,),
            held_by=partial(_held_by, registrations),
            finalizer=DEPLOYMENT_FINALIZER,
        )
    )


def _held_by(registrations: Users, name: Key) -> str:
    text = f'cannot remove finalizer of ControllerDeployment "{name}" because still found ControllerRegistrations'
    return reason(text, registrations.of(name))
