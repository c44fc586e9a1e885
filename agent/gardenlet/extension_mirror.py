"""A garden object mirrored as an extension object in the seed, which an extension reconciles.

    async with the pass of the garden object:
        extension = await mirror.find(name)
        copy = await mirror.copy_secret("bucket-a", data, extension)
        if mirror.is_to_be_asked(extension, spec, copy):
            return await mirror.ask_unless_paused(owner, name, spec, extension)  # the response starts the next pass
        else:
            match standing_of(extension): ...

Nothing waits. `answers` selects the changes of extension objects that are responses.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from agent.gardenlet.shoot_states.rules.contents import Left
from gardener import keys, operations
from gardener.extension_contract import (
    FAILED,
    Trouble,
    after_success,
    is_unanswered,
    kick,
    last_operation,
    pause_before_kick,
    timestamp,
)
from kube.clock import seconds_until, time_or_none
from kube.objects import Key, Object, annotations, is_deleting, key, mapping, metadata, spec, text, uid
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter

NAMESPACE = "garden"
"""Namespace of the copies of Secrets."""
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 1000.0
_ENDED = ("Succeeded", "Error", FAILED)
_ASKS = (keys.OPERATION_MIGRATE, keys.OPERATION_RESTORE)


_REFERRED = {each.kind: each for each in (CONFIG_MAPS, SECRETS)}


def _placed(obj: Object, namespace: str) -> Object:
    return {**obj, "metadata": {**metadata(obj), "namespace": namespace}}


def has_ended(extension: Object) -> bool:
    return last_operation(extension).get("state") in _ENDED


def answers(change: Change[Object]) -> bool:
    """Whether an extension has responded; the response in an object not seen before may be new, so it counts."""
    old, new = change.old, change.new
    if new is None:
        return False
    if old is None:
        return has_ended(new)
    requested, asked_before = (annotations(each).get(keys.OPERATION) for each in (new, old))
    if requested == keys.OPERATION_RECONCILE or (requested in _ASKS and requested != asked_before):
        return False
    return has_ended(new) and last_operation(old) != last_operation(new)


class Pauses:
    """Growing pauses between requests to an extension that fails."""

    def __init__(self) -> None:
        self._until: dict[Key, tuple[datetime, float]] = {}

    def next(self, name: Key, *, now: datetime) -> float:
        """Seconds until the next request; 0 if it may be sent now, which starts the next pause."""
        until, pause = self._until.get(name, (now, _FIRST_PAUSE / 2))
        if until > now:
            return seconds_until(until, now, longest=pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
        self._until[name] = now + timedelta(seconds=pause), pause
        return 0.0

    def forget(self, name: Key) -> None:
        self._until.pop(name, None)


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


def _is_newer(copy: Copy, operation: Object) -> bool:
    """Whether a Secret was written after an operation."""
    answered, changed = time_or_none(operation.get("lastUpdateTime")), time_or_none(copy.timestamp)
    is_old = answered is not None and changed is not None and answered < changed.replace(microsecond=0)
    return copy.is_written or is_old


@dataclass(eq=False, kw_only=True, slots=True)
class ExtensionMirror:
    """Mirror of garden objects in the seed.

    Args:
        client: of the seed.
        resource: the kind of extension object.
    """

    client: Client
    resource: Resource
    clock: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _pauses: Pauses = field(default_factory=Pauses)

    async def find(self, name: Key) -> Object | None:
        return await self.client.find(self.resource, name)

    async def copy_secret(self, name: str, data: Mapping[str, str], extension: Object | None = None) -> Copy:
        """Write the data into a Secret in the seed; its timestamp is later than the response of its extension."""
        live = await self.client.find(SECRETS, Key(NAMESPACE, name))
        noted = annotations(live or {}).get(keys.TIMESTAMP, "")
        if live is not None and noted and mapping(live.get("data")) == dict(data):
            return Copy(is_written=False, timestamp=noted)
        moment = timestamp(after_success(extension or {}, self.clock()))
        meta = {"name": name, "namespace": NAMESPACE, "annotations": {keys.TIMESTAMP: moment}}
        body = {**SECRETS.type_meta, "metadata": meta, "type": "Opaque", "data": dict(data)}
        if live is None:
            await self.client.create(SECRETS, body)
        else:
            kept = metadata(live)
            meta = {**kept, "annotations": {**annotations(live), keys.TIMESTAMP: moment}}
            await self.client.replace(SECRETS, {**live, "metadata": meta, "data": dict(data)})
        return Copy(is_written=True, timestamp=moment)

    def is_to_be_asked(self, live: Object | None, wanted: Object, copy: Copy | None = None) -> bool:
        """Whether the extension object has no response to the desired spec.

        Args:
            live: the extension object.
            wanted: its desired spec.
            copy: a Secret that the extension reads.
        """
        if live is None or spec(live) != wanted or is_unanswered(live):
            return True
        operation = last_operation(live)
        if not operation and keys.OPERATION not in annotations(live):
            return True
        return operation.get("state") == FAILED or (copy is not None and _is_newer(copy, operation))

    async def ask_unless_paused(self, owner: Key, name: Key, wanted: Object, live: Object | None) -> Result:
        """Request a reconciliation for a garden object, with pauses if the extension keeps failing."""
        has_failed = last_operation(live or {}).get("state") == FAILED
        if has_failed and (pause := self._pauses.next(owner, now=self.clock())):
            return RequeueAfter(pause)
        await self.ask(name, wanted, live)
        return Done()

    def forget_pauses(self, owner: Key) -> None:
        """Forget the pauses of a garden object that is reconciled or gone."""
        self._pauses.forget(owner)

    async def ask(
        self, name: Key, wanted: Object, live: Object | None, *, operation: str = keys.OPERATION_RECONCILE
    ) -> Object:
        """Write the spec and the operation annotation in one request, and return the object."""
        requested = await self.kick(operation, live)
        if live is None:
            place = {"namespace": name.namespace} if name.namespace else {}
            meta = {"name": name.name, **place, "annotations": requested}
            made = {**self.resource.type_meta, "metadata": meta, "spec": wanted}
            return await self.client.create(self.resource, made)
        meta = {**metadata(live), "annotations": {**annotations(live), **requested}}
        return await self.client.replace(self.resource, {**live, "metadata": meta, "spec": wanted})

    async def kick(self, operation: str, live: Object | None) -> dict[str, str]:
        """Return the annotations that trigger an operation; wait if the last response is from the current second."""
        if pause := pause_before_kick(live or {}, now=self.clock()):
            await self.sleep(pause)
        return kick(operation, now=self.clock(), live=live)

    async def write_status(self, live: Object, fields: Object) -> None:
        """Write status fields that an extension needs before it can proceed."""
        where = key(live)
        body = {"status": fields}
        await self.client.patch(self.resource, where, body, subresource="status")

    async def hand_over(self, live: Object, left: Left, *, namespace: str) -> dict[str, str]:
        """Trigger a restoration from the state of another seed, and return the annotations.

        While the object waits for its state, it gets that first, so this is safe to interrupt and repeat. `namespace`
        is that of the objects to which the state refers.
        """
        if annotations(live).get(keys.OPERATION) == keys.OPERATION_WAIT_FOR_STATE:
            for each in left.objects:
                await self.client.create_if_missing(_REFERRED[text(each.get("kind"))], _placed(each, namespace))
            if left.status:
                await self.write_status(live, left.status)
        requested = await self.kick(keys.OPERATION_RESTORE, live)
        await self.annotate(live, requested)
        return requested

    async def annotate(self, live: Object, added: Mapping[str, str]) -> None:
        """Add annotations."""
        meta = metadata(live)
        body = {"metadata": {"uid": uid(live), "annotations": dict(added)}}
        await self.client.patch(self.resource, Key(meta.get("namespace") or "", meta["name"]), body)

    async def confirm_and_delete(self, live: Object) -> None:
        """Confirm and request the deletion, unless already deleting."""
        if not is_deleting(live):
            await self.annotate(live, {keys.CONFIRM_DELETION: "true", keys.TIMESTAMP: timestamp(self.clock())})
            await self.delete(live)

    async def delete(self, live: Object) -> None:
        """Request the deletion of this object, identified by its uid."""
        await self.client.delete_if_exists(self.resource, key(live), uid=uid(live))

    async def delete_secret(self, name: str) -> None:
        await self.client.delete_if_exists(SECRETS, Key(NAMESPACE, name))
