"""Writing the status of ManagedResources, which several controllers share.

Each controller computes the status that it wants from the present one, changing its own fields only. What they want for
one ManagedResource at about the same time becomes one write, and there is never more than one under way for it, so they
do not get into each other's way. Nothing is written if nothing changed; only changed fields are sent, with the
resourceVersion as precondition; after a conflict with somebody outside, the present status is read and the computation
done anew, so nobody overwrites what another has just said.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from kube.cache import Store
from kube.client import Client
from kube.errors import Conflict
from kube.objects import Key, Object, key, metadata, resource_version
from kube.resources import Resource

_ATTEMPTS = 5

Compute = Callable[[Object], Object]
"""From the present status to the one that is wanted."""


@dataclass(slots=True)
class _Batch:
    """What is to become one write."""

    latest: Object
    computes: list[Compute]
    due: asyncio.Event = field(default_factory=asyncio.Event)
    written: asyncio.Future[Object] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class StatusWriter:
    """Args: store: of the objects; it is told of what was written."""

    def __init__(self, client: Client, store: Store[Object], resource: Resource) -> None:
        self._client = client
        self._store = store
        self._resource = resource
        self._waiting: dict[Key, _Batch] = {}
        self._writing: dict[Key, _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def update(self, obj: Object, compute: Compute, *, patience: float = 0.0) -> Object:
        """The object with the status that `compute` makes of the present one, written if it differs.

        Args:
            obj: as known to the caller; a newer one is taken if there is one.
            compute: called once more after a conflict.
            patience: seconds for which others may join.

        Raises:
            KubeError: it could not be written; Conflict after several attempts.
        """
        name = key(obj)
        batch = self._waiting.get(name)
        if batch is None:
            batch = self._waiting[name] = _Batch(obj, [compute])
            task = asyncio.create_task(self._write_batch(name, batch, patience))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            batch.computes.append(compute)
            if resource_version(obj) > resource_version(batch.latest):
                batch.latest = obj
        if not patience:
            batch.due.set()
        # Whoever is cancelled must not take the write of the others along.
        return await asyncio.shield(batch.written)

    async def _write_batch(self, name: Key, batch: _Batch, patience: float) -> None:
        try:
            async with asyncio.timeout(patience or None):
                await batch.due.wait()
        except TimeoutError:
            pass
        while (before := self._writing.get(name)) is not None:
            await asyncio.wait((before.written,))
        del self._waiting[name]
        self._writing[name] = batch
        try:
            written = await self._write(name, batch)
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait for it
            batch.written.set_exception(error)
            batch.written.exception()  # they may all have been cancelled
        else:
            batch.written.set_result(written)
        finally:
            del self._writing[name]

    async def _write(self, name: Key, batch: _Batch) -> Object:
        known = self._store.get(name)
        obj = batch.latest
        if known is not None and resource_version(known) > resource_version(obj):
            obj = known
        for attempt in range(_ATTEMPTS):
            changed = _changes(obj.get("status") or {}, batch.computes)
            if not changed:
                return obj
            patch = {"metadata": {"resourceVersion": metadata(obj)["resourceVersion"]}, "status": changed}
            try:
                written = await self._client.patch(
                    self._resource, name.name, patch, namespace=name.namespace, subresource="status"
                )
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
                obj = await self._client.get(self._resource, name.name, namespace=name.namespace)
                continue
            self._store.observe(written)
            return written
        raise AssertionError("unreachable")


def _changes(old: Object, computes: list[Compute]) -> Object:
    """The fields that differ in the end; None for one that goes."""
    new = old
    for compute in computes:
        new = compute(new)
    # An empty list or text is the same as none.
    return {
        name: new.get(name) or None
        for name in old.keys() | new.keys()
        if (old.get(name) or None) != (new.get(name) or None)
    }
