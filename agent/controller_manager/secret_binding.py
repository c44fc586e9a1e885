"""The controller `secretbinding`: a SecretBinding is not deleted as long as Shoots refer to it."""

from functools import partial

from agent.controller_manager.common.api import BY_SECRET_BINDING, SECRET_BINDINGS_VIEW, SHOOTS_VIEW
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from gardener.api.garden import SECRET_BINDINGS
from gardener.garden.users import reason
from kube.objects import Key
from kube.runtime.loop import ControlLoop


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.secret_binding, context.garden.caches
    loop = ControlLoop("secretbinding", kind=SECRET_BINDINGS, workers=settings.concurrent_syncs)
    bindings = loop.watch(caches, SECRET_BINDINGS_VIEW, enqueue_unprotected())
    shoots = Users(loop, caches, SHOOTS_VIEW, BY_SECRET_BINDING, nearby=True)
    return loop.reconciled_by(
        Protection(
            context,
            bindings,
            users=(shoots,),
            held_by=partial(_held_by, shoots),
            event="Warning",
            reporter="secretbinding-controller",
        )
    )


def _held_by(shoots: Users, name: Key) -> str:
    text = "Cannot delete SecretBinding, because the following Shoots are still referencing it"
    return reason(text, shoots.of(name))
