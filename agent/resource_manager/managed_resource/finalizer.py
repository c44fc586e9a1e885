"""The finalizer of ManagedResources, and what else is written into their metadata."""

from dataclasses import dataclass

from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Object, key
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalizer:
    name: str
    client: Client
    store: Store[Object]

    async def add(self, managed_resource: Object) -> Object:
        """The ManagedResource as it is then. Raises ReconcileError."""
        managed_resource = await ensure_finalizer(self.client, MANAGED_RESOURCES, managed_resource, self.name)
        self.store.observe(managed_resource)
        return managed_resource

    async def remove(self, managed_resource: Object) -> None:
        """Raises ReconcileError."""
        left = await remove_finalizer(self.client, MANAGED_RESOURCES, managed_resource, self.name)
        if left is not None:
            self.store.observe(left)

    async def patch(self, managed_resource: Object, meta: Object) -> Object:
        """Merge into the metadata. Raises KubeError."""
        own = key(managed_resource)
        patched = await self.client.patch(MANAGED_RESOURCES, own.name, {"metadata": meta}, namespace=own.namespace)
        self.store.observe(patched)
        return patched
