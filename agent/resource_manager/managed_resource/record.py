"""Writes to ManagedResources in a pass: their finalizer and annotations, and above all their status."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import orjson
import structlog

from agent.resource_manager.managed_resource.rules.volume_claims import VolumeClaims
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource.inventory import PENDING, RESOURCES, InventoryDiff, all_listed, shortened
from gardener.managed_resource.messages import too_many_text
from gardener.managed_resource.references import sorted_references
from kube.conditions import Condition, with_conditions
from kube.errors import KubeError, NotFound, TooLarge
from kube.objects import Key, Object, key
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import Compute, StatusWriter

_SETTLING_SECONDS = 1.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class StatusTooLargeError(ReconcileError):
    """The objects cannot be listed. The text is for the condition, which can be written instead."""


@dataclass(eq=False, kw_only=True, slots=True)
class Record:
    """Writes ManagedResources; most methods return the result."""

    client: Client
    store: Store[Object]
    status: StatusWriter
    finalizer: str
    retry: Callable[[Key], None]
    """Enqueues a ManagedResource whose status could not be written."""
    _unstorable: dict[Key, tuple[object, str]] = field(default_factory=dict, init=False)
    """References that could not be listed after a pass, and the reason; until the next one, which reports it."""

    def get(self, name: Key) -> Object | None:
        """Return it with the status of the last pass, even if that is not written yet; None if it does not exist."""
        managed_resource = self.store.get(name)
        return None if managed_resource is None else self.status.expected(managed_resource)

    async def add_finalizer(self, managed_resource: Object) -> Object:
        """Add the finalizer, if it is missing.

        Raises:
            ReconcileError: that failed.
        """
        managed_resource = await ensure_finalizer(self.client, MANAGED_RESOURCES, managed_resource, self.finalizer)
        self.store.observe(managed_resource)
        return managed_resource

    async def remove_finalizer(self, managed_resource: Object) -> None:
        """Remove the finalizer.

        Raises:
            ReconcileError: that failed.
        """
        left = await remove_finalizer(self.client, MANAGED_RESOURCES, managed_resource, self.finalizer)
        if left is not None:
            self.store.observe(left)

    async def patch(self, managed_resource: Object, meta: Object) -> Object:
        """Merge into the metadata."""
        own = key(managed_resource)
        patched = await self.client.patch(MANAGED_RESOURCES, own, {"metadata": meta})
        self.store.observe(patched)
        return patched

    async def write(self, managed_resource: Object, conditions: Sequence[Condition], **fields: object) -> Object:
        """Set conditions and other fields of the status, if they differ.

        Raises:
            StatusTooLargeError: the API server refuses the size.
            ReconcileError: the write failed otherwise.
        """
        try:
            computed = self._compute(conditions, fields)
            return await self.status.update_if_exists(managed_resource, computed) or managed_resource
        except TooLarge as error:
            raise StatusTooLargeError(_too_large(managed_resource, fields, error)) from error
        except KubeError as error:
            raise ReconcileError(f"could not update the ManagedResource status: {error}") from error

    async def announce(self, managed_resource: Object, diff: InventoryDiff, conditions: Sequence[Condition]) -> Object:
        """List objects before their creation, so that nothing is ever leaked.

        Raises:
            StatusTooLargeError: the API server refuses the size.
            ReconcileError: the write failed otherwise.
        """
        announced = diff.announced()
        try:
            written = await self.write(managed_resource, conditions, **{PENDING: announced})
        except StatusTooLargeError:
            # When many objects replace others, both are listed for a while. New objects alone must fit in full: they
            # would not fit at the end either.
            if not (managed_resource.get("status") or {}).get(RESOURCES):
                raise
            written = await self.write(managed_resource, conditions, **{PENDING: shortened(announced)})
        if not (written.get("status") or {}).get(PENDING):
            # The CustomResourceDefinition in this cluster is the original's, which lacks the field.
            listed = sorted_references([*all_listed(written), *announced])
            written = await self.write(written, [], resources=listed)
        return written

    async def note_claims(self, managed_resource: Object, name: str, claims: VolumeClaims) -> None:
        """Record in the reference of the object key `name` which volume claims are deleted with it."""

        def compute(status: Object) -> Object:
            lists = (field for field in (RESOURCES, PENDING) if status.get(field))
            return {**status, **{field: claims.note_in(status[field], name) for field in lists}}

        await self.status.update(managed_resource, compute)

    async def conclude(self, managed_resource: Object, conditions: Sequence[Condition], **fields: object) -> None:
        """Write the status at the end of a pass, together with the findings of the health controllers.

        Applied objects need a moment to start. The write is delayed for that in the background, so that others get
        their turn; if it fails in the end, there is another pass.

        Raises:
            StatusTooLargeError: the API server refuses the size, or refused the same list before.
            ReconcileError: the write failed otherwise.
        """
        compute = self._compute(conditions, fields)
        name = key(managed_resource)
        listed, problem = self._unstorable.pop(name, (None, ""))
        if problem and listed == fields.get(RESOURCES):
            raise StatusTooLargeError(problem)

        def failed(error: BaseException) -> None:
            if isinstance(error, NotFound):
                return
            if isinstance(error, TooLarge):
                self._unstorable[name] = fields.get(RESOURCES), _too_large(managed_resource, fields, error)
            log.info("The ManagedResource status could not be updated", error=str(error))
            self.retry(name)

        if not self.status.update_later(managed_resource, compute, patience=_SETTLING_SECONDS, failed=failed):
            await self.write(managed_resource, conditions, **fields)

    def forget(self, name: Key) -> None:
        """Forget a deleted ManagedResource."""
        self._unstorable.pop(name, None)

    async def flush(self) -> None:
        """Write all delayed updates."""
        await self.status.flush()

    def _compute(self, conditions: Sequence[Condition], fields: Mapping[str, object]) -> Compute:
        now = datetime.now(UTC)

        def compute(status: Object) -> Object:
            present = status.get("conditions") or []
            return {**status, **fields, "conditions": with_conditions(present, conditions, now=now)}

        return compute


def _too_large(managed_resource: Object, fields: Mapping[str, object], error: TooLarge) -> str:
    lists = {**(managed_resource.get("status") or {}), **fields}
    listed = [*(lists.get(RESOURCES) or []), *(lists.get(PENDING) or [])]
    return too_many_text(len(listed), len(orjson.dumps(listed)), str(error))
