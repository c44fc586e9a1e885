"""One pass over the credentials that bindings refer to: labels and finalizer are one write.

Bindings of both kinds may refer to them, in all namespaces; nobody but this reconciler decides about them, from the
bindings that there are. Before credentials in deletion are let go, the API server is asked for these: nothing brings
back what has gone.
"""

import structlog

from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.credentials.bindings import Bindings
from agent.controller_manager.credentials.rules import needed_changes
from kube.cache import Store
from kube.client import Client
from kube.controller import Done, Result
from kube.errors import NotFound
from kube.objects import Key, metadata

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Reconciler:
    """Args: credentials: Secrets, or WorkloadIdentities."""

    def __init__(self, *, client: Client, credentials: Store[Credentials], bindings: Bindings) -> None:
        self._client = client
        self._credentials = credentials
        self._bindings = bindings

    async def reconcile(self, key: Key) -> Result:
        found = self._credentials.get(key)
        if found is not None and found.is_deleting and "finalizers" in needed_changes(found, self._bindings.of(key)):
            await self._bindings.look(self._client, key)
        bindings = self._bindings.of(key)
        if found is None:
            if any(bindings.values()):
                log.info("Bindings refer to credentials that do not exist")
            return Done()  # their coming leads to a pass
        if changes := needed_changes(found, bindings):
            await self._change(key, {**changes, "resourceVersion": str(self._credentials.version(key))})
        return Done()

    async def _change(self, key: Key, meta: dict[str, object]) -> None:
        resource = self._credentials.view.resource
        try:
            answer = await self._client.patch(resource, key.name, {"metadata": meta}, namespace=key.namespace)
        except NotFound:
            return
        self._credentials.observe({"metadata": metadata(answer)})
