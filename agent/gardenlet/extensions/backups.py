"""Parts of the backup controllers: the status of the operation of an object, and copies of credentials in the seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gardener import keys, operations
from gardener.extension_contract import Trouble, after_success, timestamp
from kube.differences import merge_patch
from kube.objects import Key, Object, annotations, mapping, string_map
from kube.resources import SECRETS
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.edits import edit
from kube.runtime.events import EventRecorder
from kube.runtime.status import StatusWriter

NAMESPACE = "garden"
"""Namespace of the copies of Secrets."""


class OperationStatus:
    """Status of a garden object: its operation and the result.

    `lastError` stays until an operation has succeeded.
    """

    def __init__(self, client: Client, store: Store[Object], *, clock: Callable[[], datetime]) -> None:
        self._writer, self._store, self._clock = StatusWriter(client, store), store, clock

    async def processing(self, obj: Object, kind: str, reported: str, **fields: Any) -> Object:
        return await self._write(obj, self._operation(kind, operations.PROCESSING, 0, reported), fields)

    async def pending(self, obj: Object, kind: str, reported: str) -> Object:
        return await self._write(obj, self._operation(kind, operations.PENDING, 0, reported), {})

    async def failed(self, obj: Object, kind: str, reported: str, *, error: Object, **fields: Any) -> Object:
        operation = self._operation(kind, operations.ERROR, 50, reported)
        return await self._write(obj, operation, {"lastError": error, **fields})

    async def succeeded(self, obj: Object, kind: str, reported: str, **fields: Any) -> Object:
        operation = self._operation(kind, operations.SUCCEEDED, 100, reported)
        return await self._write(obj, operation, {"lastError": None, **fields})

    async def _write(self, obj: Object, wanted: Object, fields: Object) -> Object:
        """Return the object with this status, written if it differs."""
        before = mapping(mapping(obj.get("status")).get("lastOperation"))
        standing = {
            "lastOperation": operations.following(before, wanted),
            "observedGeneration": operations.generation(obj),
        }
        written = await self._writer.write(obj, {**standing, **fields})
        self._store.observe(written)
        return written

    def _operation(self, kind: str, state: str, progress: int, reported: str) -> Object:
        return operations.operation(kind, state, progress, reported, now=self._clock())


def error_of(trouble: Trouble) -> Object:
    """Value of `lastError`."""
    return {"description": trouble.reason} | ({"codes": list(trouble.codes)} if trouble.codes else {})


@dataclass(frozen=True, slots=True)
class Copy:
    """A Secret in the seed."""

    is_written: bool
    timestamp: str
    """Time of the last change of its data."""


@dataclass(eq=False, kw_only=True, slots=True)
class Credentials:
    """Copies of Secrets of the garden in the seed, for extensions."""

    garden: Client
    seed: Client
    recorder: EventRecorder
    clock: Callable[[], datetime]

    async def copy(self, name: str, data: Mapping[str, str], extension: Object | None = None) -> Copy:
        """Write the data into a Secret in the seed; its timestamp is later than the response of its extension."""
        live = await self.seed.find(SECRETS, Key(NAMESPACE, name))
        noted = annotations(live or {}).get(keys.TIMESTAMP, "")
        if live is not None and noted and mapping(live.get("data")) == dict(data):
            return Copy(is_written=False, timestamp=noted)
        moment = timestamp(after_success(extension or {}, self.clock()))
        meta = {"name": name, "namespace": NAMESPACE, "annotations": {keys.TIMESTAMP: moment}}
        body = {**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": dict(data)}
        if live is None:
            await self.seed.create(SECRETS, body)
        else:
            noted_now = {"metadata": {"annotations": {keys.TIMESTAMP: moment}}}
            await edit(
                self.seed,
                SECRETS,
                live,
                lambda present: noted_now | merge_patch({"data": mapping(present.get("data"))}, {"data": dict(data)}),
            )
        return Copy(is_written=True, timestamp=moment)

    async def refresh(self, owner: Object, source: Key, name: str) -> None:
        """Copy a Secret again before a deletion; if it is gone in the garden, keep the existing copy."""
        secret = await self.garden.find(SECRETS, source)
        if secret is not None:
            await self.copy(name, string_map(secret.get("data")))
            return
        message = f"Secret {source} with the credentials is gone; the copy in the seed, {NAMESPACE}/{name}, is used"
        self.recorder.event(owner, "Warning", "DeleteError", message)

    async def delete(self, name: str) -> None:
        """Delete a copy."""
        await self.seed.delete_if_exists(SECRETS, Key(NAMESPACE, name))
