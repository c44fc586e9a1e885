"""Asks extensions, and waits for their answers; see the docstring of the package."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from agent.gardenlet.extension_mirror import ExtensionMirror
from agent.gardenlet.extension_objects.kinds import Kind
from agent.gardenlet.extension_objects.questions import Question, bounded
from agent.gardenlet.shoot_states.rules.contents import Left
from gardener import keys
from gardener.extension_contract import (
    Answer,
    Pending,
    Ready,
    Trouble,
    answered_error,
    is_migrated,
    kick,
    pending,
)
from kube.clock import format_duration
from kube.differences import merge_patch
from kube.errors import AlreadyExists, Conflict
from kube.objects import Key, Object, annotations, held_by, is_deleting, key, mapping, metadata, spec, uid
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError, TerminalError
from kube.runtime.waiting import NotInTimeError, Waiting

_ABSENT = "it does not exist"
_ATTEMPTS = 5
"""To write an object whose status somebody writes at the same time."""


class ExtensionError(TerminalError):
    """An extension has not done what was asked. `codes` say what kind of failure that is."""

    def __init__(self, said: str, codes: tuple[str, ...] = ()) -> None:
        super().__init__(said)
        self.codes = codes


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to an extension."""

    kind: Kind
    name: Key
    timestamp: str
    """Of the kick that is to be answered."""

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {self.name}"


def _waits_for_state(live: Object) -> bool:
    return annotations(live).get(keys.OPERATION) == keys.OPERATION_WAIT_FOR_STATE


class _Ask(Protocol):
    """One attempt; the last one gives way to no other writer."""

    async def __call__(self, *, is_last: bool) -> Asked: ...


class ExtensionObjects:
    """Of one cluster. `report` is called with what is waited for, for which object, each time that it changes."""

    def __init__(
        self,
        *,
        client: Client,
        waiting: Waiting,
        clock: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        report: Callable[[str, str], None] = lambda _name, _reason: None,
    ) -> None:
        self._client, self._waiting, self._report = client, waiting, report
        self._clock, self._sleep = clock, sleep

    # --- asking

    async def deploy(
        self,
        kind: Kind,
        manifest: Object,
        *,
        is_demanded: bool = False,
        operation: str = keys.OPERATION_RECONCILE,
        data_changed: str = "",
        live: Object | None = None,
        is_absent: bool = False,
    ) -> Asked:
        """Write the object, and ask its extension if anything is new; for the other arguments see `Question`.

        Args:
            kind: the kind of the object.
            manifest: as it is to be.
            is_demanded: see `Question`.
            operation: likewise.
            data_changed: likewise.
            live: as it has just been read; None: it is read, unless `is_absent` is set.
            is_absent: there is none, most probably.

        Raises:
            ReconcileError: it is too large, or others keep writing it.
            ExtensionError: there is one that is being deleted, and does not go.
            KubeError: the API server does not answer.
        """
        question = Question(
            kind=kind, manifest=manifest, operation=operation, is_demanded=is_demanded, data_changed=data_changed
        )
        name, read = key(manifest), live

        async def ask(*, is_last: bool) -> Asked:
            nonlocal read, is_absent
            live = None if is_absent else await self._living(kind, name, read)
            read, is_absent = None, False
            if live is None:
                asked = await self._mirror(kind).kick(operation, None)
                await self._client.create(kind.resource, question.body(None, asked))
            elif question.is_open(live):
                asked = await self._mirror(kind).kick(operation, live)
                body = question.body(live, asked)
                # An extension that fails may write its status faster than this is answered.
                await (self._patch(kind, live, body) if is_last else self._client.replace(kind.resource, body))
            else:
                asked = annotations(live)
            return Asked(kind, name, asked.get(keys.TIMESTAMP, ""))

        return await self._although_others_write(kind, name, ask)

    async def scale(self, asked: Asked, replicas: int) -> Asked:
        """Change how many members it has, and nothing else. Args: asked: what was asked before, and is answered.

        Raises: ReconcileError: somebody has asked for something else since; KubeError.
        """
        kind, name = asked.kind, asked.name

        async def ask(*, is_last: bool) -> Asked:
            live = await self._client.get(kind.resource, name)
            if operation := annotations(live).get(keys.OPERATION):
                raise ReconcileError(f'{asked} can\'t be scaled: gardener operation "{operation}" is not picked up yet')
            if (noted := annotations(live).get(keys.TIMESTAMP, "")) != asked.timestamp:
                raise ReconcileError(
                    f'{asked} can\'t be scaled: annotation "{keys.TIMESTAMP}" is {noted or "missing"}, and not'
                    f" {asked.timestamp}, so somebody else has asked for something"
                )
            if spec(live).get("replicas") == replicas:
                return asked
            again = kick(keys.OPERATION_RECONCILE, now=self._clock(), live=live)
            meta = {**metadata(live), "annotations": {**annotations(live), **again}}
            scaled = {**live, "metadata": meta, "spec": {**spec(live), "replicas": replicas}}
            await (self._patch(kind, live, scaled) if is_last else self._client.replace(kind.resource, bounded(scaled)))
            return Asked(kind, name, again[keys.TIMESTAMP])

        return await self._although_others_write(kind, name, ask)

    async def restore(self, kind: Kind, manifest: Object, left: Left, *, live: Object | None = None) -> Asked:
        """Ask to go on with what an extension on another seed has left.

        Args:
            kind: the kind of the object.
            manifest: as of `deploy`.
            left: its state, and what that refers to.
            live: as it has just been read; None: it is read.

        Raises: ReconcileError, ExtensionError, KubeError.
        """
        name = key(manifest)
        live = live or await self._client.find(kind.resource, name)
        if live is not None and not is_deleting(live) and not _waits_for_state(live):
            # It has its state, and may have a newer one by now.
            return await self.deploy(kind, manifest, is_demanded=True, operation=keys.OPERATION_RESTORE, live=live)
        await self.deploy(kind, manifest, is_demanded=True, operation=keys.OPERATION_WAIT_FOR_STATE, live=live)
        live = await self._client.get(kind.resource, name)
        bounded({**live, "status": {**mapping(live.get("status")), **left.status}})
        asked = await self._mirror(kind).hand_over(live, left, namespace=name.namespace)
        return Asked(kind, name, asked[keys.TIMESTAMP])

    async def migrate(self, kind: Kind, name: Key) -> Asked | None:
        """Ask to let go of what belongs to the object, unless that is done; None: there is none. Raises KubeError."""
        live = await self._waiting.find(kind.resource, name)
        if live is None:
            return None
        if is_migrated(live):
            return Asked(kind, name, "")
        asked = await self._mirror(kind).kick(keys.OPERATION_MIGRATE, live)
        await self._mirror(kind).annotate(live, asked)
        return Asked(kind, name, asked[keys.TIMESTAMP])

    async def delete(self, kind: Kind, name: Key, *, live: Object | None = None) -> str:
        """Confirm the deletion, and ask for it. Returns the uid of what goes; empty: there is nothing.

        Args: live: as it has just been read; None: it is read. Raises KubeError.
        """
        live = live or await self._waiting.find(kind.resource, name)
        if live is None:
            return ""
        await self._mirror(kind).confirm_and_delete(live)
        return uid(live)

    async def _living(self, kind: Kind, name: Key, live: Object | None) -> Object | None:
        """An object that is being deleted is waited for: the next one is another."""
        live = live or await self._client.find(kind.resource, name)
        if live is not None and is_deleting(live):
            await self.wait_until_gone(kind, name)
            return None
        return live

    async def _patch(self, kind: Kind, live: Object, wanted: Object) -> Object:
        """Write what differs, whatever else has changed since. Raises KubeError."""
        changed, name = merge_patch(live, wanted), key(live)
        body = {**changed, "metadata": {**mapping(changed.get("metadata")), "uid": uid(live)}}
        return await self._client.patch(kind.resource, name, body)

    async def _although_others_write(self, kind: Kind, name: Key, ask: _Ask) -> Asked:
        for attempt in range(_ATTEMPTS):
            try:
                return await ask(is_last=attempt == _ATTEMPTS - 1)
            except (Conflict, AlreadyExists):
                continue
        raise ReconcileError(f"{kind.resource.kind} {name} was changed by others in each of {_ATTEMPTS} attempts")

    def _mirror(self, kind: Kind) -> ExtensionMirror:
        return ExtensionMirror(client=self._client, resource=kind.resource, clock=self._clock, sleep=self._sleep)

    # --- waiting

    async def wait(self, asked: Asked) -> Object:
        """The object, once its extension has answered. Raises ExtensionError, KubeError."""

        def answer(live: Object | None) -> Answer:
            return Pending(_ABSENT) if live is None else asked.kind.answer(live, kicked=asked.timestamp)

        async with self._patience(asked, f"Error while waiting for {asked} to become ready") as patience:
            return await self._waiting.until_ready(
                asked.kind.resource,
                asked.name,
                lambda live: patience.reason(answer(live)),
                seconds=asked.kind.longest,
                report=patience.report,
            )

    async def wait_until_migrated(self, asked: Asked) -> None:
        """Return once the extension has let go, or the object is gone. Raises ExtensionError, KubeError."""

        def answer(live: Object | None) -> Answer:
            if live is None or is_migrated(live):
                return Ready()
            return answered_error(live, kicked=asked.timestamp) or pending(live, "its extension has not let go yet")

        async with self._patience(asked, f"Error while waiting for {asked} to be migrated") as patience:
            await self._waiting.until_ready(
                asked.kind.resource,
                asked.name,
                lambda live: patience.reason(answer(live)),
                seconds=asked.kind.longest,
                report=patience.report,
                or_gone=True,
            )

    async def wait_until_gone(self, kind: Kind, name: Key, *, its_uid: str = "") -> None:
        """Return as well if there is no such kind.

        Args: its_uid: of the one that goes; empty: of what is there. Raises ExtensionError, KubeError.
        """
        if not its_uid:
            live = await self._waiting.find(kind.resource, name)
            if live is None:
                return
            its_uid = uid(live)
        asked = Asked(kind, name, "")

        def held(live: Object) -> str:
            return patience.reason(answered_error(live) or pending(live, held_by(live)))

        async with self._patience(asked, f"Failed to delete {asked}") as patience:
            await self._waiting.until_gone(
                kind.resource, name, seconds=kind.longest, its_uid=its_uid, report=patience.report, held=held
            )

    @asynccontextmanager
    async def _patience(self, asked: Asked, failed: str) -> AsyncIterator["_Patience"]:
        """Bears trouble for a while. Args: failed: what the error begins with."""
        limit = asyncio.timeout(None)
        patience = _Patience(limit, asked.kind.severe, lambda reason: self._report(str(asked), reason))
        try:
            async with limit:
                yield patience
        except TimeoutError:
            if not limit.expired():
                raise
        except NotInTimeError:
            patience.last = f"{patience.last}, still after {format_duration(asked.kind.longest)}"
        else:
            return
        raise ExtensionError(f"{failed}: {patience.last}", patience.codes)


@dataclass(slots=True)
class _Patience:
    """Ends a wait by its limit, when an error is reported for too long without interruption."""

    limit: asyncio.Timeout
    severe: float
    report: Callable[[str], None]
    last: str = "nothing is known of it yet"
    codes: tuple[str, ...] = field(default=())
    is_troubled: bool = False

    def reason(self, answer: Answer) -> str:
        """What is missing; empty: nothing."""
        match answer:
            case Trouble(reason, codes):
                if not self.is_troubled:
                    self.limit.reschedule(asyncio.get_running_loop().time() + self.severe)
                self.is_troubled, self.last, self.codes = True, reason, codes
                return reason
            case Pending(reason):
                self._calm(reason)
                return reason
            case Ready():
                self._calm("")
                return ""

    def _calm(self, reason: str) -> None:
        if self.is_troubled:
            self.limit.reschedule(None)
        self.is_troubled, self.last, self.codes = False, reason, ()
