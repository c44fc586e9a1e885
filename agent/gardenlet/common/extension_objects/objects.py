"""Requests to extensions, and the wait for responses; see the docstring of the package."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from agent.gardenlet.common.extension_objects.kinds import Kind
from agent.gardenlet.common.extension_objects.questions import Question, bounded
from agent.gardenlet.common.shoot_states.rules.contents import Left
from gardener import keys
from gardener.extension_contract import (
    Answer,
    Pending,
    Ready,
    Trouble,
    answered_error,
    is_migrated,
    kick,
    pause_before_kick,
    pending,
    timestamp,
)
from kube.clock import format_duration
from kube.differences import merge_patch
from kube.errors import AlreadyExists, Conflict
from kube.objects import Key, Object, annotations, held_by, is_deleting, key, mapping, metadata, spec, text, uid
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError, TerminalError
from kube.runtime.waiting import NotInTimeError, Waiting

_REFERRED = {each.kind: each for each in (CONFIG_MAPS, SECRETS)}
_ABSENT = "it does not exist"
_ATTEMPTS = 5
"""Attempts to write an object whose status another client writes at the same time."""


class ExtensionError(TerminalError):
    """An extension has not completed the request. `codes` classify the failure."""

    def __init__(self, reported: str, codes: tuple[str, ...] = ()) -> None:
        super().__init__(reported)
        self.codes = codes


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to an extension."""

    kind: Kind
    name: Key
    timestamp: str
    """Value of the timestamp annotation that requests a response."""
    is_new: bool = field(default=False, compare=False)
    """Whether it is demanded, or differs from the object; most requests only repeat an earlier one."""

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {self.name}"


def _waits_for_state(live: Object) -> bool:
    return annotations(live).get(keys.OPERATION) == keys.OPERATION_WAIT_FOR_STATE


class _Ask(Protocol):
    """One attempt; the last one overwrites concurrent changes."""

    async def __call__(self, *, is_last: bool) -> Asked: ...


class ExtensionObjects:
    """Extension objects of one cluster. `report` is called for an object whenever the reason for waiting changes."""

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

    # --- requests

    async def deploy(
        self,
        kind: Kind,
        manifest: Object,
        *,
        is_demanded: bool = False,
        operation: str = keys.OPERATION_RECONCILE,
        live: Object | None = None,
        is_absent: bool = False,
    ) -> Asked:
        """Write the object, and send a request to its extension if anything changed.

        Args:
            kind: the kind of the object.
            manifest: desired object.
            is_demanded: see `Question`.
            operation: likewise.
            live: the object as just read; None to read it, unless `is_absent` is set.
            is_absent: whether there is most probably none.

        Raises:
            ReconcileError: it is too large, or other clients keep writing it.
            ExtensionError: an object of this name is being deleted, and does not go.
        """
        question = Question(kind=kind, manifest=manifest, operation=operation, is_demanded=is_demanded)
        return await self.send(question, live=live, is_absent=is_absent)

    async def send(self, question: Question, *, live: Object | None = None, is_absent: bool = False) -> Asked:
        """Write the object of a request, and send it if it is open. Arguments and errors as of `deploy`."""
        kind, name, read = question.kind, key(question.manifest), live

        async def ask(*, is_last: bool) -> Asked:
            nonlocal read, is_absent
            live = None if is_absent else await self._living(kind, name, read)
            read, is_absent = None, False
            is_new = live is None or question.is_demanded or question.differs(live)
            if live is None:
                requested = await self._kick(question.operation, None)
                await self._client.create(kind.resource, question.body(None, requested))
            elif question.is_open(live):
                requested = await self._kick(question.operation, live)
                body = question.body(live, requested)
                # A failing extension may write its status faster than this request completes.
                await (self._patch(kind, live, body) if is_last else self._client.replace(kind.resource, body))
            else:
                requested = annotations(live)
            return Asked(kind, name, requested.get(keys.TIMESTAMP, ""), is_new=is_new)

        return await self._although_others_write(kind, name, ask)

    async def scale(self, requested: Asked, replicas: int) -> Asked:
        """Change only the number of members; the previous request must have a response.

        Raises:
            ReconcileError: another request has been made since.
        """
        kind, name = requested.kind, requested.name

        async def ask(*, is_last: bool) -> Asked:
            live = await self._client.get(kind.resource, name)
            if operation := annotations(live).get(keys.OPERATION):
                raise ReconcileError(
                    f'{requested} can\'t be scaled: gardener operation "{operation}" is not picked up yet'
                )
            if (noted := annotations(live).get(keys.TIMESTAMP, "")) != requested.timestamp:
                raise ReconcileError(
                    f'{requested} can\'t be scaled: annotation "{keys.TIMESTAMP}" is {noted or "missing"}, and not'
                    f" {requested.timestamp}, so another client has requested an operation"
                )
            if spec(live).get("replicas") == replicas:
                return requested
            again = kick(keys.OPERATION_RECONCILE, now=self._clock(), live=live)
            meta = {**metadata(live), "annotations": {**annotations(live), **again}}
            scaled = {**live, "metadata": meta, "spec": {**spec(live), "replicas": replicas}}
            await (self._patch(kind, live, scaled) if is_last else self._client.replace(kind.resource, bounded(scaled)))
            return Asked(kind, name, again[keys.TIMESTAMP])

        return await self._although_others_write(kind, name, ask)

    async def restore(
        self, kind: Kind, manifest: Object, left: Left, *, namespace: str = "", live: Object | None = None
    ) -> Asked:
        """Request a restoration from the state of another seed.

        Args:
            kind: the kind of the object.
            manifest: as for `deploy`.
            left: its state, and the objects to which it refers.
            namespace: that of these objects; empty: that of the object.
            live: the object as just read; None to read it.

        Raises:
            ReconcileError: it is too large, or other clients keep writing it.
            ExtensionError: an object of this name is being deleted, and does not go.
        """
        name = key(manifest)
        live = live or await self._client.find(kind.resource, name)
        if live is not None and not is_deleting(live) and not _waits_for_state(live):
            # It has its state already, perhaps a newer one.
            return await self.deploy(kind, manifest, is_demanded=True, operation=keys.OPERATION_RESTORE, live=live)
        await self.deploy(kind, manifest, is_demanded=True, operation=keys.OPERATION_WAIT_FOR_STATE, live=live)
        live = await self._client.get(kind.resource, name)
        bounded({**live, "status": {**mapping(live.get("status")), **left.status}})
        if _waits_for_state(live):
            for each in left.objects:
                placed = {**each, "metadata": {**metadata(each), "namespace": namespace or name.namespace}}
                await self._client.create_if_missing(_REFERRED[text(each.get("kind"))], placed)
            if left.status:
                await self._client.patch(kind.resource, name, {"status": left.status}, subresource="status")
        return await self._request(kind, live, keys.OPERATION_RESTORE)

    async def migrate(self, kind: Kind, name: Key, *, live: Object | None = None) -> Asked | None:
        """Request a migration unless it is done; None if there is no object.

        `live` is the object as just read; None to read it.
        """
        live = live or await self._waiting.find(kind.resource, name)
        if live is None:
            return None
        if is_migrated(live):
            return Asked(kind, name, "")
        return await self._request(kind, live, keys.OPERATION_MIGRATE)

    async def delete(self, kind: Kind, name: Key, *, live: Object | None = None) -> str:
        """Confirm and request the deletion; return the uid of the object, empty if there is none.

        `live` is the object as just read; None to read it.
        """
        live = live or await self._waiting.find(kind.resource, name)
        if live is None:
            return ""
        if not is_deleting(live):
            confirmed = {keys.CONFIRM_DELETION: "true", keys.TIMESTAMP: timestamp(self._clock())}
            await self._client.annotate(kind.resource, name, confirmed, uid=uid(live))
            await self._client.delete_if_exists(kind.resource, name, uid=uid(live))
        return uid(live)

    async def _request(self, kind: Kind, live: Object, operation: str) -> Asked:
        """Request an operation without changing the spec."""
        requested = await self._kick(operation, live)
        await self._client.annotate(kind.resource, key(live), requested, uid=uid(live))
        return Asked(kind, key(live), requested[keys.TIMESTAMP])

    async def _kick(self, operation: str, live: Object | None) -> dict[str, str]:
        """Return the annotations that trigger an operation; wait if the last response is from the current second."""
        if pause := pause_before_kick(live or {}, now=self._clock()):
            await self._sleep(pause)
        return kick(operation, now=self._clock(), live=live)

    async def _living(self, kind: Kind, name: Key, live: Object | None) -> Object | None:
        """Return the object; wait until one that is being deleted is gone, and return None."""
        live = live or await self._client.find(kind.resource, name)
        if live is not None and is_deleting(live):
            await self.wait_until_gone(kind, name)
            return None
        return live

    async def _patch(self, kind: Kind, live: Object, wanted: Object) -> Object:
        """Write the differences, even if the object has changed since."""
        changed, name = merge_patch(live, wanted), key(live)
        body = {**changed, "metadata": {**mapping(changed.get("metadata")), "uid": uid(live)}}
        return await self._client.patch(kind.resource, name, body)

    async def _although_others_write(self, kind: Kind, name: Key, ask: _Ask) -> Asked:
        for attempt in range(_ATTEMPTS):
            try:
                return await ask(is_last=attempt == _ATTEMPTS - 1)
            except (Conflict, AlreadyExists):
                continue
        raise ReconcileError(
            f"{kind.resource.kind} {name} was changed by other clients in each of {_ATTEMPTS} attempts"
        )

    # --- responses

    async def wait(self, requested: Asked) -> Object:
        """Return the object once its extension has responded.

        Raises:
            ExtensionError: it has reported an error, or not responded, for too long.
        """

        def answer(live: Object | None) -> Answer:
            return Pending(_ABSENT) if live is None else requested.kind.answer(live, kicked=requested.timestamp)

        async with self._patience(requested, f"Error while waiting for {requested} to become ready") as patience:
            return await self._waiting.until_ready(
                requested.kind.resource,
                requested.name,
                lambda live: patience.reason(answer(live)),
                seconds=requested.kind.longest,
                limit=patience.limit,
                report=patience.report,
            )

    async def wait_until_migrated(self, requested: Asked) -> None:
        """Return once the extension has migrated the object, or the object is gone.

        Raises:
            ExtensionError: it has reported an error, or not responded, for too long.
        """

        def answer(live: Object | None) -> Answer:
            if live is None or is_migrated(live):
                return Ready()
            return answered_error(live, kicked=requested.timestamp) or pending(
                live, "its extension has not finished the migration yet"
            )

        async with self._patience(requested, f"Error while waiting for {requested} to be migrated") as patience:
            await self._waiting.until_ready(
                requested.kind.resource,
                requested.name,
                lambda live: patience.reason(answer(live)),
                seconds=requested.kind.longest,
                limit=patience.limit,
                report=patience.report,
                or_gone=True,
            )

    async def wait_until_gone(self, kind: Kind, name: Key, *, expected_uid: str = "") -> None:
        """Return once the object is gone, or if the kind is not served.

        `its_uid` is that of the deleted object; empty for the present one.

        Raises:
            ExtensionError: it is not gone in time.
        """
        if not expected_uid:
            live = await self._waiting.find(kind.resource, name)
            if live is None:
                return
            expected_uid = uid(live)
        requested = Asked(kind, name, "")

        def held(live: Object) -> str:
            return patience.reason(answered_error(live) or pending(live, held_by(live)))

        async with self._patience(requested, f"Failed to delete {requested}") as patience:
            await self._waiting.until_gone(
                kind.resource,
                name,
                seconds=kind.longest,
                limit=patience.limit,
                expected_uid=expected_uid,
                report=patience.report,
                held=held,
            )

    @asynccontextmanager
    async def _patience(self, requested: Asked, failed: str) -> AsyncIterator["_Patience"]:
        """Tolerate errors for a while; `failed` is the prefix of the final error."""
        patience = _Patience(
            severe=requested.kind.severe,
            end=asyncio.get_running_loop().time() + requested.kind.longest,
            report=lambda reason: self._report(str(requested), reason),
        )
        try:
            yield patience
        except NotInTimeError as error:
            is_over = patience.limit.when() == patience.end
            still = f", still after {format_duration(requested.kind.longest)}" if is_over else ""
            raise ExtensionError(f"{failed}: {patience.last}{still}", patience.codes) from error


@dataclass(slots=True, kw_only=True)
class _Patience:
    """Ends a wait early if errors are reported for too long without interruption.

    Attributes:
        severe: duration of such an interval, in seconds.
        end: time at which the wait ends otherwise, by the clock of the event loop.
        limit: end of the wait.
    """

    severe: float
    end: float
    report: Callable[[str], None]
    last: str = "its state is not known yet"
    codes: tuple[str, ...] = field(default=())
    is_troubled: bool = False
    limit: asyncio.Timeout = field(init=False)

    def __post_init__(self) -> None:
        self.limit = asyncio.timeout_at(self.end)

    def reason(self, answer: Answer) -> str:
        """Return the reason for waiting; empty if there is none."""
        match answer:
            case Trouble(reason, codes):
                if not self.is_troubled:
                    self._end_at(min(self.end, asyncio.get_running_loop().time() + self.severe))
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
            self._end_at(self.end)
        self.is_troubled, self.last, self.codes = False, reason, ()

    def _end_at(self, time: float) -> None:
        if not self.limit.expired():
            self.limit.reschedule(time)
