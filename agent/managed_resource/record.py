"""Writing to the ManagedResource itself: finalizer, annotations, status."""

from collections.abc import Callable, Sequence
from datetime import datetime

from agent.api import MANAGED_RESOURCES
from agent.managed_resource.conditions import Condition, with_conditions
from agent.status import StatusWriter
from kube.cache import Store
from kube.client import Client
from kube.controller import ReconcileError
from kube.errors import KubeError, NotFound
from kube.objects import Object, finalizers, is_deleting, key, metadata


class Record:
    """Each method gives the ManagedResource as it is then."""

    def __init__(
        self,
        *,
        client: Client,
        store: Store[Object],
        status: StatusWriter,
        finalizer: str,
        utcnow: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._store = store
        self._status = status
        self._finalizer = finalizer
        self._utcnow = utcnow

    async def with_finalizer(self, managed_resource: Object) -> Object:
        present = finalizers(managed_resource)
        if self._finalizer in present:
            return managed_resource
        try:
            return await self.patch(managed_resource, {"finalizers": [*present, self._finalizer]}, locked=True)
        except KubeError as error:
            raise ReconcileError(f"failed to add finalizer: {error}") from error

    async def without_finalizer(self, managed_resource: Object) -> None:
        present = finalizers(managed_resource)
        if self._finalizer not in present:
            return
        left = [name for name in present if name != self._finalizer]
        try:
            await self.patch(managed_resource, {"finalizers": left or None}, locked=True)
        except NotFound:
            return
        except KubeError as error:
            raise ReconcileError(f"failed to remove finalizer: {error}") from error

    async def patch(self, managed_resource: Object, meta: Object, *, locked: bool = False) -> Object:
        """Merge into the metadata; `locked` makes it fail if somebody else has written meanwhile. Raises KubeError."""
        name = key(managed_resource)
        if locked:
            meta = {**meta, "resourceVersion": metadata(managed_resource)["resourceVersion"]}
        patched = await self._client.patch(MANAGED_RESOURCES, name.name, {"metadata": meta}, namespace=name.namespace)
        if finalizers(patched) or not is_deleting(patched):
            self._store.observe(patched)
        return patched

    async def write(self, managed_resource: Object, said: Sequence[Condition], **fields: object) -> Object:
        """Set conditions and other fields of the status, if they are not so yet."""
        now = self._utcnow()

        def compute(status: Object) -> Object:
            return {**status, **fields, "conditions": with_conditions(status.get("conditions") or [], said, now=now)}

        try:
            return await self._status.update(managed_resource, compute)
        except NotFound:
            return managed_resource
        except KubeError as error:
            raise ReconcileError(f"could not update the ManagedResource status: {error}") from error
