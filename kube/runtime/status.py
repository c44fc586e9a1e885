"""Writing the status of objects of a kind. Nothing is written if nothing changed, and only changed fields are sent.

Every write carries the resourceVersion as precondition. What follows from a conflict depends on what was decided by:

    write     the object as it was read: it was decided by the whole of it, so it is `Overtaken` by any change, and the
              controller makes another pass
    update    the present status alone, of which a controller changes its own fields: they are computed again from the
              status as it is after the conflict, so no writer overwrites what another has just written

Several controllers may share a writer. Their updates of one object at about the same time become one write, and there
is never more than one under way for it, so they do not get into each other's way.

Controllers that compute conditions may register as advisers. Every update takes along what they advise for the object
at that moment, and a patient update is put off until they have no more objections: what has just been applied needs a
moment until it runs, and would otherwise be reported twice. That moment gets longer when the API server is slow: else
the API server would get the more writes, the less it can bear.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.differences import merge_patch
from kube.errors import Conflict, NotFound
from kube.objects import Key, Object, key, mapping, metadata, resource_version, uid
from kube.runtime.cache import Store
from kube.runtime.client import Client

_ATTEMPTS = 5
_FLUSH_SECONDS = 2.0
_ANSWERS = 10
"""So many answers, one after the other, take about as long as it takes until all have seen what was changed."""
_LONGEST_PATIENCE = 30.0
_WEIGHT = 0.2
"""Weight of the last answer in the moving average."""

Compute = Callable[[Object], Object]
"""From the present status to the one that is wanted."""

Complete = Callable[[Object], Object]
"""From an object to its status with what follows from the rest of it."""

Is = Callable[[Object], bool]


class Overtaken(Conflict):
    """The object has changed, or gone, since it was read: no failure, since another pass decides by what it is now."""

    def __init__(self, obj: Object) -> None:
        super().__init__(409, message=f"{key(obj)} has changed since it was read")


@dataclass(frozen=True, slots=True)
class Advice:
    """What a controller has to say about an object."""

    compute: Compute
    is_settled: bool
    """Whether that is likely to stay so."""


Adviser = Callable[[Object], Advice | None]
"""Asked with the object as it is about to be; None if there is nothing to say now."""


@dataclass(slots=True)
class _Batch:
    """What is to become one write."""

    latest: Object
    computes: list[Compute]
    due: asyncio.Event = field(default_factory=asyncio.Event)
    written: asyncio.Future[Object] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class StatusWriter:
    """Args:
    store: of the objects; it observes what was written. `update` needs whole objects in it, `write` does not.
    complete: adds what sums up the rest of a status. It is part of every update; a status that lacks it is written
        with the next update.
    still: whether an object is one that its writers have to say something of. If it is not any more after a conflict,
        nothing is written.
    """

    def __init__(
        self,
        client: Client,
        store: Store[Any],
        *,
        complete: Complete = lambda obj: obj.get("status") or {},
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
        """Seconds for which it pays to wait for what else there will be to say: the more, the slower answers are."""
        return min(_ANSWERS * self._answer_seconds, _LONGEST_PATIENCE)

    def ask(self, adviser: Adviser) -> None:
        """Have it asked from now on before anything is written."""
        self._advisers.append(adviser)

    async def write(self, obj: Object, fields: Object) -> Object:
        """The object with these fields in its status, written if they say something new.

        Args:
            obj: as it was read.
            fields: None removes one; what is not among them stays.

        Raises: Overtaken; KubeError: they could not be written.
        """
        status = mapping(obj.get("status"))
        changed = merge_patch(status, {**status, **fields})
        if not changed:
            return obj
        try:
            return await self._patch(obj, changed)
        except (Conflict, NotFound) as error:
            raise Overtaken(obj) from error

    async def replace(self, obj: Object) -> Object:
        """Write the whole status, if the store does not keep all of it, so that changes can't be seen.

        Raises: Overtaken; KubeError: it could not be written.
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
        """The object with the status that `compute` makes of the present one, written if it differs.

        Args:
            obj: as known to the caller; a newer one is taken if there is one.
            compute: called once more after a conflict.

        Raises: Overtaken: after several conflicts, or since there is another object of this name; KubeError: it could
            not be written.
        """
        batch = self._join(obj, compute, patience=None)
        batch.due.set()
        # A caller that is cancelled must not take the write of the others along.
        return await asyncio.shield(batch.written)

    def update_later(
        self, obj: Object, compute: Compute, *, patience: float, failed: Callable[[BaseException], None]
    ) -> bool:
        """Write when the advisers find that all has settled, but after `patience` seconds in any case, or more if
        answers are slow.

        Returns whether there is something to wait for; if not, nothing was done, and `update` is the way. `failed` is
        called if it could not be written.
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
        """The object with the status that it will have when all that was said of it is written."""
        name, obj = key(obj), self._newest(obj)
        under_way = (self._writing.get(name), self._waiting.get(name))
        computes = [compute for batch in under_way if batch is not None for compute in batch.computes]
        return {**obj, "status": _computed(obj.get("status") or {}, computes)} if computes else obj

    def reconsider(self, name: Key) -> None:
        """An adviser may say something else now."""
        batch = self._waiting.get(name)
        if batch is not None and self._is_settled(self._newest(batch.latest), batch.computes):
            batch.due.set()

    async def flush(self) -> None:
        """Write at once what waits, and give it a moment."""
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

    async def _write(self, name: Key, batch: _Batch) -> Object:
        obj, attempts = self._newest(batch.latest), _ATTEMPTS
        while True:
            changed = merge_patch(obj.get("status") or {}, self._wanted(obj, batch.computes))
            if not changed:
                return obj
            try:
                return await self._patch(obj, changed)
            except Conflict as error:
                attempts -= 1
                present = await self._client.get(self._resource, name)
                # What is decided about one must not be written into another one of the same name.
                if not attempts or uid(present) != uid(obj) or not self._still(present):
                    raise Overtaken(obj) from error
                obj = present

    async def _patch(self, obj: Object, changed: Object) -> Object:
        own, began = key(obj), time.monotonic()
        body = {"metadata": {"resourceVersion": metadata(obj)["resourceVersion"]}, "status": changed}
        written = await self._client.patch(self._resource, own, body, subresource="status")
        self._answer_seconds += _WEIGHT * (time.monotonic() - began - self._answer_seconds)
        self._store.observe(written)
        return written

    def _newest(self, obj: Object) -> Object:
        """As stored: the object may have come from `expected`."""
        known: Object | None = self._store.get(key(obj))
        return known if known is not None and resource_version(known) >= resource_version(obj) else obj

    def _wanted(self, obj: Object, computes: list[Compute]) -> Object:
        """The status to write, with what the advisers say if there is something to write at all."""
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


def _computed(status: Object, computes: list[Compute]) -> Object:
    for compute in computes:
        status = compute(status)
    return status
