"""Writing to the ManagedResource itself: finalizer, annotations, status."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog

from agent.api import MANAGED_RESOURCES
from agent.managed_resource.conditions import Condition, with_conditions
from agent.managed_resource.inventory import PENDING, RESOURCES
from agent.managed_resource.volume_claims import VolumeClaims
from agent.status import Compute, StatusWriter
from kube.cache import Store
from kube.client import Client
from kube.controller import ReconcileError
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, finalizers, is_deleting, key, metadata

_SETTLING_SECONDS = 1.0


class Record:
    """Most methods give the ManagedResource as it is then.

    Args: retry: has a ManagedResource looked at again, whose status could not be written.
    """

    def __init__(
        self,
        *,
        client: Client,
        store: Store[Object],
        status: StatusWriter,
        finalizer: str,
        retry: Callable[[Key], None],
        utcnow: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._store = store
        self._status = status
        self._finalizer = finalizer
        self._retry = retry
        self._utcnow = utcnow
        self._log = structlog.get_logger()

    def expected(self, managed_resource: Object) -> Object:
        """With what was said at the end of the last pass, even if it waits to be written."""
        return self._status.expected(managed_resource)

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
        try:
            return await self._status.update(managed_resource, self._compute(said, fields))
        except NotFound:
            return managed_resource
        except KubeError as error:
            raise ReconcileError(f"could not update the ManagedResource status: {error}") from error

    async def note_claims(self, managed_resource: Object, name: str, claims: VolumeClaims) -> None:
        """Note in the reference of the object key `name` which volume claims go with it."""

        def compute(status: Object) -> Object:
            lists = (field for field in (RESOURCES, PENDING) if status.get(field))
            return {**status, **{field: claims.note_in(status[field], name) for field in lists}}

        await self._status.update(managed_resource, compute)

    async def conclude(self, managed_resource: Object, said: Sequence[Condition], **fields: object) -> None:
        """The same at the end of a pass, together with what the health controllers find.

        What was applied just now needs a moment until it runs. This is not waited for here, so that others get their
        turn; should the write fail in the end, there is another pass.
        """
        compute = self._compute(said, fields)
        name = key(managed_resource)

        def failed(error: BaseException) -> None:
            if not isinstance(error, NotFound):
                self._log.info("The ManagedResource status could not be updated", error=str(error))
                self._retry(name)

        if not self._status.update_later(managed_resource, compute, patience=_SETTLING_SECONDS, failed=failed):
            await self.write(managed_resource, said, **fields)

    async def flush(self) -> None:
        """Write what was put off."""
        await self._status.flush()

    def _compute(self, said: Sequence[Condition], fields: Mapping[str, object]) -> Compute:
        now = self._utcnow()

        def compute(status: Object) -> Object:
            return {**status, **fields, "conditions": with_conditions(status.get("conditions") or [], said, now=now)}

        return compute
