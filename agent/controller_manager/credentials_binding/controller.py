"""The controller `credentialsbinding`: a CredentialsBinding is not deleted as long as Shoots refer to it."""

from functools import partial

from agent.controller_manager.common.api import BY_CREDENTIALS_BINDING, CREDENTIALS_BINDINGS_VIEW, SHOOTS_VIEW
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from agent.controller_manager.credentials_binding.reconcile import Reconciler
from gardener.garden.resources import CREDENTIALS_BINDINGS
from gardener.garden.users import reason
from kube.loop import ControlLoop
from kube.objects import Key


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.credentials_binding, context.garden.caches
    loop = ControlLoop("credentialsbinding", kind=CREDENTIALS_BINDINGS, workers=settings.concurrent_syncs)
    bindings = loop.watch(caches, CREDENTIALS_BINDINGS_VIEW, enqueue_unprotected())
    shoots = Users(loop, caches, SHOOTS_VIEW, BY_CREDENTIALS_BINDING, nearby=True)
    protection = Protection(
        context,
        bindings,
        users=(shoots,),
        held_by=partial(_held_by, shoots),
        event="Warning",
        reporter="credentialsbinding-controller",
    )
    return loop.reconciled_by(Reconciler(bindings=bindings, protection=protection))


def _held_by(shoots: Users, name: Key) -> str:
    text = "Cannot delete CredentialsBinding, because the following Shoots are still referencing it"
    return reason(text, shoots.of(name))
