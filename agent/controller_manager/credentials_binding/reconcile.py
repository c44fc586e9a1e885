"""One pass over a CredentialsBinding: kept while it is in use; credentials of an unknown kind are complained about."""

from agent.controller_manager.common.protection import Protection
from gardener.garden.users import credentials_reference, secrets, workload_identities
from kube.cache import Store
from kube.controller import Result, TerminalError
from kube.objects import Key, Object, is_deleting, key, text


class Reconciler:
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
    """Raises TerminalError: references don't change."""
    if not any((*secrets(binding), *workload_identities(binding))):
        reference = credentials_reference(binding)
        named = Key(text(reference.get("namespace")) or key(binding).namespace, text(reference.get("name")))
        kind = f"{text(reference.get('apiVersion'))}, Kind={text(reference.get('kind'))}"
        raise TerminalError(f"unsupported credentials reference: {named}, {kind}")
