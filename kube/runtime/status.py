"""Write the status of objects of a kind. Nothing is written if nothing changed, and only changed fields are sent.

A write carries the resourceVersion as precondition, since that costs nothing. After a conflict the object is read, and
only the fields to write are a precondition, see `kube.json_patches`. So writers of other fields are never in the way.
What happens if the same fields were changed depends on the basis of the decision:

    write     the spec and these fields as they were read: any change makes it `Overtaken`, and the controller makes
              another pass
    update    only the present status, in which a controller changes its own fields: they are computed again from the
              status after the conflict, so no writer overwrites fresh changes of another

Several controllers may share a writer. Their updates of one object at about the same time become one write, and only
one at a time is under way for it, so they do not get into each other's way.

Controllers that compute conditions may register as advisers. Every update includes their advice for the object at that
moment, and a patient update is delayed until they have no more objections: objects that were just applied need a moment
until they run, and would otherwise be reported twice. That moment gets longer when the API server is slow: else an
overloaded API server would get even more writes.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.differences import merge_patch
from kube.errors import ApiError, Conflict, Invalid, NotFound
from kube.json_patches import guarded
from kube.objects import Key, Object, key, mapping, metadata, resource_version, uid
from kube.runtime.cache import Store
from kube.runtime.client import JSON_PATCH, Client

_ATTEMPTS = 5
_FLUSH_SECONDS = 2.0
_ANSWERS = 10
"""Number of consecutive answers that take about as long as it takes until all controllers have observed a change."""
_LONGEST_PATIENCE = 30.0
_WEIGHT = 0.2
"""Weight of the last answer in the moving average."""

Compute = Callable[[Object], Object]
"""Computes the desired status from the present one."""

Complete = Callable[[Object], Object]
"""Computes the status of an object with the fields that follow from the rest of it."""

Is = Callable[[Object], bool]


def status_of(obj: Object) -> Object:
    return obj.get("status") or {}


class Overtaken(Conflict):
    """The object has changed, or gone, since it was read: no failure, since another pass decides on its new state."""

    def __init__(self, obj: Object) -> None:
        super().__init__(409, message=f"{key(obj)} has changed since it was read")


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice of a controller for the status of an object."""

    compute: Compute
    is_settled: bool
    """Whether the advice is likely to stay the same."""


Adviser = Callable[[Object], Advice | None]
"""Called with the object as it is about to be written; None if there is no advice now."""


@dataclass(slots=True)
class _Batch:
    """Updates that become one write."""

    latest: Object
    computes: list[Compute]
    due: asyncio.Event = field(default_factory=asyncio.Event)
    written: asyncio.Future[Object] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class StatusWriter:
    """Args:
    store: of the objects; it observes written objects. `update` needs whole objects in it, `write` does not.
    complete: adds the summary of the rest of a status. It is part of every update; a status that lacks it is written
        with the next update.
    still: whether its writers are still responsible for an object. If not, after a conflict, nothing is written.
    """

    def __init__(
        self,
        client: Client,
        store: Store[Any],
        *,
        complete: Complete = status_of,
        still: Is = lambda _: True,
    ) -> None:
        self._client = client
        self._store = store
        self._resource = store.view.resource
        self._complete = complete
        self._still = still
        self._advisers: list[Adviser] = []
        self._waiting: dict[Key, _Batch] = {}
        self._writing: dict[Key, _Batch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answer_seconds = 0.0

    @property
    def patience(self) -> float:
        """Seconds for which waiting for further updates pays off: the more, the slower answers are."""
        return min(_ANSWERS * self._answer_seconds, _LONGEST_PATIENCE)

    def ask(self, adviser: Adviser) -> None:
        """Register an adviser for all further writes."""
        self._advisers.append(adviser)

    async def write(self, obj: Object, fields: Object) -> Object:
        """Write these fields of the status if they change it; return the object.

        Args:
            obj: as it was read.
            fields: None removes one; fields that are not given stay.

        Raises: Overtaken; KubeError: the write failed.
        """
        status = mapping(obj.get("status"))
        changed = merge_patch(status, {**status, **fields})
        if not changed:
            return obj
        try:
            return await self._patch(obj, changed)
        except (Conflict, NotFound) as error:
            return await self._write_beside_others(obj, fields, changed, error)

    async def replace(self, obj: Object) -> Object:
        """Write the whole status, if the store does not keep all of it, so that changes can't be detected.

        Raises: Overtaken; KubeError: the write failed.
        """
        try:
            written = await self._client.replace(self._resource, obj, subresource="status")
        except (Conflict, NotFound) as error:
            raise Overtaken(obj) from error
        self._store.observe(written)
        return written

    async def update_if_exists(self, obj: Object, compute: Compute) -> Object | None:
        """`update` of an object that may be missing: None if it is."""
        try:
            return await self.update(obj, compute)
        except NotFound:
            return None

    async def update(self, obj: Object, compute: Compute) -> Object:
        """Write the status that `compute` returns for the present one if it differs; return the object.

        Args:
            obj: as known to the caller; a newer one is taken if there is one.
            compute: called again after each conflict.

        Raises: Overtaken: after several conflicts, or since there is another object of this name; KubeError: the write
            failed.
        """
        batch = self._join(obj, compute, patience=None)
        batch.due.set()
        # A cancelled caller must not cancel the write of the others.
        return await asyncio.shield(batch.written)

    def update_later(
        self, obj: Object, compute: Compute, *, patience: float, failed: Callable[[BaseException], None]
    ) -> bool:
        """Write when the advisers consider everything settled, but at the latest after `patience` seconds, or more if
        answers are slow.

        Returns whether there is something to wait for; if not, nothing was done, and the caller uses `update`. `failed`
        is called if the write failed.
        """
        waiting = self._waiting.get(key(obj))
        computes = [*waiting.computes, compute] if waiting is not None else [compute]
        if self._is_settled(self._newest(obj), computes):
            return False
        batch = self._join(obj, compute, patience=max(patience, self.patience))

        def report(written: asyncio.Future[Object]) -> None:
            error = None if written.cancelled() else written.exception()
            if error is not None:
                failed(error)

        batch.written.add_done_callback(report)
        return True

    def expected(self, obj: Object) -> Object:
        """Object with the status that it will have when all pending updates are written."""
        name, obj = key(obj), self._newest(obj)
        under_way = (self._writing.get(name), self._waiting.get(name))
        computes = [compute for batch in under_way if batch is not None for compute in batch.computes]
        return {**obj, "status": _computed(obj.get("status") or {}, computes)} if computes else obj

    def reconsider(self, name: Key) -> None:
        """Check pending updates again, since the advice may have changed."""
        batch = self._waiting.get(name)
        if batch is not None and self._is_settled(self._newest(batch.latest), batch.computes):
            batch.due.set()

    async def flush(self) -> None:
        """Write all pending updates at once, and wait a moment for them."""
        for batch in self._waiting.values():
            batch.due.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_FLUSH_SECONDS)

    def _join(self, obj: Object, compute: Compute, *, patience: float | None) -> _Batch:
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
        return batch

    async def _write_batch(self, name: Key, batch: _Batch, patience: float | None) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await batch.due.wait()
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

    async def _write_beside_others(self, obj: Object, fields: Object, changed: Object, error: ApiError) -> Object:
        """Write fields although other parts of the object have changed. Raises Overtaken; KubeError."""
        before, attempts = mapping(obj.get("status")), _ATTEMPTS
        while True:
            present = await self._client.find(self._resource, key(obj))
            if present is None or not _has_same_spec(present, obj):
                raise Overtaken(obj) from error
            having = mapping(present.get("status"))
            if any(having.get(name) != before.get(name) for name in fields) or not attempts:
                raise Overtaken(obj) from error
            attempts -= 1
            with contextlib.suppress(Conflict, Invalid):
                return await self._patch(present, changed, is_guarded=True)

    async def _write(self, name: Key, batch: _Batch) -> Object:
        obj, attempts, is_guarded = self._newest(batch.latest), _ATTEMPTS, False
        while True:
            changed = merge_patch(obj.get("status") or {}, self._wanted(obj, batch.computes))
            if not changed:
                return obj
            try:
                return await self._patch(obj, changed, is_guarded=is_guarded)
            except (Conflict, Invalid) as error:
                if isinstance(error, Invalid) and not is_guarded:
                    raise
                attempts, is_guarded = attempts - 1, True
                present = await self._client.get(self._resource, name)
                # A decision about one object must not be written into another one of the same name.
                if not attempts or uid(present) != uid(obj) or not self._still(present):
                    raise Overtaken(obj) from error
                obj = present

    async def _patch(self, obj: Object, changed: Object, *, is_guarded: bool = False) -> Object:
        """Write changes. Args: is_guarded: whether only the changed fields are a precondition, not the whole object."""
        own, began = key(obj), time.monotonic()
        if is_guarded:
            body, form = guarded(obj, {"status": changed}), JSON_PATCH
            written = await self._client.patch(self._resource, own, body, subresource="status", content_type=form)
        else:
            locked = {"metadata": {"resourceVersion": metadata(obj)["resourceVersion"]}, "status": changed}
            written = await self._client.patch(self._resource, own, locked, subresource="status")
        self._answer_seconds += _WEIGHT * (time.monotonic() - began - self._answer_seconds)
        self._store.observe(written)
        return written

    def _newest(self, obj: Object) -> Object:
        """Newest known state: the object may have come from `expected`."""
        known: Object | None = self._store.get(key(obj))
        return known if known is not None and resource_version(known) >= resource_version(obj) else obj

    def _wanted(self, obj: Object, computes: list[Compute]) -> Object:
        """Status to write, with the advice if there is something to write at all."""
        present = obj.get("status") or {}
        wanted = _computed(present, computes)
        if merge_patch(present, wanted):
            for advice in self._advice({**obj, "status": wanted}):
                wanted = advice.compute(wanted)
        return self._complete({**obj, "status": wanted})

    def _is_settled(self, obj: Object, computes: list[Compute]) -> bool:
        present = obj.get("status") or {}
        wanted = _computed(present, computes)
        if not merge_patch(present, wanted):
            return True
        return all(advice.is_settled for advice in self._advice({**obj, "status": wanted}))

    def _advice(self, obj: Object) -> list[Advice]:
        return [advice for adviser in self._advisers if (advice := adviser(obj)) is not None]


def _has_same_spec(obj: Object, other: Object) -> bool:
    """Whether a decision about one holds for the other: a deletion raises the generation, too."""
    return uid(obj) == uid(other) and metadata(obj).get("generation") == metadata(other).get("generation")


def _computed(status: Object, computes: list[Compute]) -> Object:
    for compute in computes:
        status = compute(status)
    return status
