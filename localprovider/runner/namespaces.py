"""One pass over a namespace that may be gone: its local state is removed with it."""

from dataclasses import dataclass

from kube.objects import Key
from kube.resources import NAMESPACES
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from localprovider.runner.pods import Pods


@dataclass(eq=False, kw_only=True, slots=True)
class NamespaceReconciler:
    client: Client
    pods: Pods

    async def reconcile(self, name: Key) -> Result:
        if name.name not in self.pods.places.namespaces():
            return Done()
        # There are data of etcds: the API server has to confirm the deletion, a watch is not enough.
        if await self.client.find(NAMESPACES, name.name) is None:
            await self.pods.forget(name.name)
        return Done()
