"""The finalizer of ManagedResources, and what else is written into their metadata."""

from dataclasses import dataclass

from gardener.kinds import MANAGED_RESOURCES
from kube.cache import Store
from kube.client import Client
from kube.controller import ReconcileError
from kube.errors import KubeError, NotFound
from kube.objects import Object, finalizers, is_deleting, key, metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalizer:
    name: str
    client: Client
    store: Store[Object]

    async def add(self, managed_resource: Object) -> Object:
        """The ManagedResource as it is then. Raises ReconcileError."""
        present = finalizers(managed_resource)
        if self.name in present:
            return managed_resource
        try:
            return await self.patch(managed_resource, {"finalizers": [*present, self.name]}, locked=True)
        except KubeError as error:
            raise ReconcileError(f"failed to add finalizer: {error}") from error

    async def remove(self, managed_resource: Object) -> None:
        """Raises ReconcileError."""
        present = finalizers(managed_resource)
        if self.name not in present:
            return
        left = [name for name in present if name != self.name]
        try:
            await self.patch(managed_resource, {"finalizers": left or None}, locked=True)
        except NotFound:
            return
        except KubeError as error:
            raise ReconcileError(f"failed to remove finalizer: {error}") from error

    async def patch(self, managed_resource: Object, meta: Object, *, locked: bool = False) -> Object:
        """Merge into the metadata; `locked` makes it fail if somebody else has written meanwhile. Raises KubeError."""
        own = key(managed_resource)
        if locked:
            meta = {**meta, "resourceVersion": metadata(managed_resource)["resourceVersion"]}
        patched = await self.client.patch(MANAGED_RESOURCES, own.name, {"metadata": meta}, namespace=own.namespace)
        if finalizers(patched) or not is_deleting(patched):
            self.store.observe(patched)
        return patched
