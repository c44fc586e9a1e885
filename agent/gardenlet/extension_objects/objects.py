"""Asks extensions, and waits for their answers; see the docstring of the package."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from agent.gardenlet.extension_mirror import ExtensionMirror
from agent.gardenlet.extension_objects.kinds import Kind
from gardener import keys
from gardener.extension_contract import Answer, Pending, Ready, Trouble, is_migrated, kick, needs_kick, trouble_of
from kube.clock import format_duration
from kube.errors import AlreadyExists, Conflict
from kube.objects import Key, Object, annotations, held_by, is_deleting, key, labels, metadata, spec, uid
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError, TerminalError
from kube.runtime.waiting import NotInTimeError, Waiting

_MOST_BYTES = 1 << 20
"""Of an object; etcd takes little more."""
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


class ExtensionObjects:
    """Of one cluster. `report` is called with what is waited for, for which object, each time that it changes."""

    def __init__(
        self,
        *,
        client: Client,
        waiting: Waiting,
        clock: Callable[[], datetime],
        report: Callable[[str, str], None] = lambda _name, _reason: None,
    ) -> None:
        self._client, self._waiting, self._clock, self._report = client, waiting, clock, report

    # --- asking

    async def deploy(
        self,
        kind: Kind,
        manifest: Object,
        *,
        is_demanded: bool = False,
        operation: str = keys.OPERATION_RECONCILE,
    ) -> Asked:
        """Write the object, and ask its extension if anything is new.

        Args:
            kind: the kind of the object.
            manifest: its name, labels, annotations, and spec.
            is_demanded: whether it is asked although it was answered.
            operation: what is asked.

        Raises:
            ReconcileError: it is too large, or others keep writing it.
            KubeError: the API server does not answer.
        """
        name = key(manifest)
        size = len(orjson.dumps(manifest))
        if size > _MOST_BYTES:
            raise ReconcileError(
                f"{kind.resource.kind} {name} has {size} bytes, and may have {_MOST_BYTES}: make its spec smaller"
            )
        for _ in range(_ATTEMPTS):
            live = await self._live(kind, name)
            if live is not None and not self._is_to_be_asked(kind, live, manifest, is_demanded=is_demanded):
                return Asked(kind, name, annotations(live).get(keys.TIMESTAMP, ""))
            asked = kick(operation, now=self._clock())
            try:
                await self._write(kind, live, manifest, asked)
            except (Conflict, AlreadyExists):
                continue
            return Asked(kind, name, asked[keys.TIMESTAMP])
        raise ReconcileError(f"{kind.resource.kind} {name} was changed by others in each of {_ATTEMPTS} attempts")

    async def _live(self, kind: Kind, name: Key) -> Object | None:
        """An object that is being deleted is waited for: the next one is another."""
        live = await self._client.find(kind.resource, name.name, namespace=name.namespace)
        if live is not None and is_deleting(live):
            await self.wait_until_gone(kind, name)
            return None
        return live

    def _is_to_be_asked(self, kind: Kind, live: Object, manifest: Object, *, is_demanded: bool) -> bool:
        is_new = (
            spec(live) != spec(manifest)
            or not labels(manifest).items() <= labels(live).items()
            or not annotations(manifest).items() <= annotations(live).items()
        )
        return kind.is_always_asked or is_demanded or needs_kick(live, spec_changed=is_new)

    async def _write(self, kind: Kind, live: Object | None, manifest: Object, asked: Mapping[str, str]) -> None:
        meta = metadata(manifest)
        if live is None:
            made = {**meta, "annotations": {**annotations(manifest), **asked}}
            await self._client.create(kind.resource, {**kind.resource.type_meta, **manifest, "metadata": made})
            return
        kept = {
            **metadata(live),
            "labels": {**labels(live), **labels(manifest)},
            "annotations": {**annotations(live), **annotations(manifest), **asked},
        }
        await self._client.replace(kind.resource, {**live, "metadata": kept, "spec": spec(manifest)})

    async def restore(
        self, kind: Kind, manifest: Object, *, state: Any = None, resources: list[Object] | None = None
    ) -> Asked:
        """Ask to go on with what an extension on another seed has left; without a state, with nothing.

        Raises: ReconcileError, KubeError.
        """
        deployed = await self.deploy(kind, manifest, is_demanded=True, operation=keys.OPERATION_WAIT_FOR_STATE)
        live = await self._client.get(kind.resource, deployed.name.name, namespace=deployed.name.namespace)
        left = {name: value for name, value in (("state", state), ("resources", resources)) if value}
        mirror = self._mirror(kind)
        if left:
            await mirror.write_status(live, left)
        asked = kick(keys.OPERATION_RESTORE, now=self._clock())
        await mirror.annotate(live, asked)
        return Asked(kind, deployed.name, asked[keys.TIMESTAMP])

    async def migrate(self, kind: Kind, name: Key) -> Asked | None:
        """Ask to let go of what belongs to the object; None: there is none. Raises KubeError."""
        live = await self._client.find(kind.resource, name.name, namespace=name.namespace)
        if live is None:
            return None
        asked = kick(keys.OPERATION_MIGRATE, now=self._clock())
        await self._mirror(kind).annotate(live, asked)
        return Asked(kind, name, asked[keys.TIMESTAMP])

    async def delete(self, kind: Kind, name: Key) -> None:
        """Confirm the deletion, and ask for it. Raises KubeError."""
        live = await self._client.find(kind.resource, name.name, namespace=name.namespace)
        if live is not None:
            await self._mirror(kind).confirm_and_delete(live)

    def _mirror(self, kind: Kind) -> ExtensionMirror:
        return ExtensionMirror(client=self._client, resource=kind.resource, clock=self._clock)

    # --- waiting

    async def wait(self, asked: Asked) -> Object:
        """The object, once its extension has answered. Raises ExtensionError, KubeError."""

        def answer(live: Object | None) -> Answer:
            return asked.kind.answer(live or {}, kicked=asked.timestamp)

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
            return trouble_of(live) or Pending("its extension has not let go yet")

        async with self._patience(asked, f"Error while waiting for {asked} to be migrated") as patience:
            await self._waiting.until_ready(
                asked.kind.resource,
                asked.name,
                lambda live: patience.reason(answer(live)),
                seconds=asked.kind.longest,
                report=patience.report,
                or_gone=True,
            )

    async def wait_until_gone(self, kind: Kind, name: Key) -> None:
        """Raises ExtensionError, KubeError."""
        live = await self._client.find(kind.resource, name.name, namespace=name.namespace)
        if live is None:
            return
        asked = Asked(kind, name, "")

        def held(live: Object) -> str:
            return patience.reason(trouble_of(live) or Pending(held_by(live)))

        async with self._patience(asked, f"Failed to delete {asked}") as patience:
            await self._waiting.until_gone(
                kind.resource, name, seconds=kind.longest, its_uid=uid(live), report=patience.report, held=held
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
