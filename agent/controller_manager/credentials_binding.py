"""The controller `credentialsbinding`: a CredentialsBinding is not deleted as long as Shoots refer to it."""

from functools import partial

from agent.controller_manager.common.api import BY_CREDENTIALS_BINDING, CREDENTIALS_BINDINGS_VIEW, SHOOTS_VIEW
from agent.controller_manager.common.protection import Protection, Users, enqueue_unprotected
from agent.controller_manager.context import Context
from gardener.api.garden import CREDENTIALS_BINDINGS
from gardener.garden.users import credentials_reference, reason, secrets, workload_identities
from kube.objects import Key, Object, is_deleting, key, text
from kube.runtime.cache import Store
from kube.runtime.controller import Result, TerminalError
from kube.runtime.loop import ControlLoop


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
    held = "Cannot delete CredentialsBinding, because the following Shoots are still referencing it"
    return reason(held, shoots.of(name))


class Reconciler:
    """One pass over a CredentialsBinding: kept while it is in use; an unknown kind of credentials is an error."""

    def __init__(self, *, bindings: Store[Object], protection: Protection) -> None:
        self._bindings = bindings
        self._protection = protection

    async def reconcile(self, name: Key) -> Result:
        result = await self._protection.reconcile(name)
        binding = self._bindings.get(name)
        if binding is not None and not is_deleting(binding):
            _demand_known_kind(binding)
        return result


def _demand_known_kind(binding: Object) -> None:
    """Check the kind of the referenced credentials.

    Raises:
        TerminalError: the kind is not supported; references are immutable.
    """
    if not any((*secrets(binding), *workload_identities(binding))):
        reference = credentials_reference(binding)
        named = Key(text(reference.get("namespace")) or key(binding).namespace, text(reference.get("name")))
        kind = f"{text(reference.get('apiVersion'))}, Kind={text(reference.get('kind'))}"
        raise TerminalError(f"unsupported credentials reference: {named}, {kind}")
