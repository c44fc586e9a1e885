"""Waiting for one object: until it is as something needs it, or gone.

    waiting = Waiting(client=client, caches=caches, discovery=discovery)
    deployment = await waiting.until_ready(DEPLOYMENTS, Key("shop", "front"), unready, seconds=300)
    await waiting.until_gone(NAMESPACES, Key("", "shop"), seconds=600)

The object is watched, alone, for as long as something waits for it. What is missing is a text, by which whoever waits
can say for what (`report`). That an object is gone is asked of the API server: a watch may be behind. Where there is no
such kind any more, all its objects are gone. While the watch fails, the object is read now and then: no certificate
becomes a good one by waiting, so that ends it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from kube.errors import KindGone, KindNotServed, KubeError, Untrusted
from kube.objects import Key, Object, held_by, is_deleting, uid
from kube.resources import Resource
from kube.runtime.cache import Caches, Change, Store, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError
from kube.runtime.discovery import Discovery

Unready = Callable[[Object | None], str]
"""What is missing until an object, or None, is ready; empty: nothing. It may raise, which ends the waiting."""
Report = Callable[[str], None]

_UNKNOWN = "nothing is known of it yet"
_LOOK_SECONDS = 5.0
"""Between two looks whether the watch fails."""
_BEHIND_SECONDS = 1.0
"""Between two reads of an object that the watch says is gone, and the API server has."""


class NotInTimeError(ReconcileError):
    """The time is over; the text names the object, and what is missing."""


def _silent(_: str) -> None:
    pass


class Waiting:
    """Waits for objects of one cluster."""

    def __init__(self, *, client: Client, caches: Caches, discovery: Discovery) -> None:
        self._client = client
        self._caches = caches
        self._discovery = discovery

    async def until_ready(
        self,
        resource: Resource,
        wanted: Key,
        unready: Unready,
        *,
        seconds: float,
        since: int = 0,
        or_gone: bool = False,
        report: Report = _silent,
    ) -> Object:
        """The object, once nothing is missing.

        Args:
            resource: its kind.
            wanted: its name.
            unready: says what is missing.
            seconds: how long to wait at most.
            since: the resourceVersion of what was written last; what is older is not looked at.
            or_gone: whether it may be gone instead; what is returned is empty then.
            report: called with what is missing, each time that it changes.

        Raises:
            NotInTimeError: it is not ready in time.
            Untrusted: a certificate is not accepted.
            Exception: what `unready` raises.
        """

        async def missing(store: Store[Object]) -> str:
            if 0 < store.version(wanted) < since:
                return _UNKNOWN
            live = store.get(wanted)
            if live is None and or_gone and await self.find(resource, wanted) is None:
                return ""
            return unready(live) or ("it does not exist" if live is None else "")

        return await self._until(resource, wanted, missing, seconds=seconds, report=report, aim="ready") or {}

    async def until_gone(
        self,
        resource: Resource,
        wanted: Key,
        *,
        seconds: float,
        its_uid: str = "",
        held: Callable[[Object], str] = held_by,
        report: Report = _silent,
    ) -> None:
        """Return once the API server says that it is not there, or that it is another one of that name.

        Args:
            resource: its kind.
            wanted: its name.
            seconds: how long to wait at most.
            its_uid: of the object that is to go; empty: whichever has the name.
            held: says what the object waits for while it is being deleted; it may raise, which ends the waiting.
            report: called with what it waits for, each time that it changes.

        Raises:
            NotInTimeError: it is not gone in time.
            KubeError: the API server does not answer.
        """

        async def missing(store: Store[Object]) -> str:
            live = store.get(wanted)
            if live is None or its_uid not in ("", uid(live)):
                live = await self.find(resource, wanted)
            if live is None or its_uid not in ("", uid(live)):
                return ""
            return held(live) if is_deleting(live) else "it is not being deleted"

        await self._until(resource, wanted, missing, seconds=seconds, report=report, aim="gone", every=_BEHIND_SECONDS)

    async def find(self, resource: Resource, wanted: Key) -> Object | None:
        """The object as the API server has it; None: it is not there, or there is no such kind. Raises KubeError."""
        try:
            return await self._client.find(resource, wanted.name, namespace=wanted.namespace)
        except KindNotServed:
            pass
        try:
            resource = await self._discovery.find_any_version(resource.api_version, resource.kind)
        except KindGone:
            return None
        return await self._client.find(resource, wanted.name, namespace=wanted.namespace)

    async def _until(
        self,
        resource: Resource,
        wanted: Key,
        missing: Callable[[Store[Object]], Awaitable[str]],
        *,
        seconds: float,
        report: Report,
        aim: str,
        every: float | None = None,
    ) -> Object | None:
        """What is known of the object when nothing is missing. Args: every: looks again although nothing changed."""
        last = _UNKNOWN
        limit = asyncio.timeout(seconds)
        try:
            async with limit, self._followed(resource, wanted) as (store, changed):
                while reason := await missing(store):
                    if reason != last:
                        last = reason
                        report(reason)
                    await self._change(store, wanted, changed, every)
                    changed.clear()
                return store.get(wanted)
        except TimeoutError:
            if not limit.expired():
                raise
        raise NotInTimeError(f"{resource.kind} {wanted} is not {aim} after {seconds:g} s: {last}")

    @asynccontextmanager
    async def _followed(self, resource: Resource, wanted: Key) -> AsyncIterator[tuple[Store[Object], asyncio.Event]]:
        """What is known of the object, and an event that is set when that changes."""
        changed = asyncio.Event()

        def note(change: Change[Object]) -> None:
            if change.key == wanted:
                changed.set()

        view = View(
            resource,
            without_managed_fields,
            field_selector=f"metadata.name={wanted.name}",
            namespace=wanted.namespace,
        )
        store = self._caches.acquire(view)
        unsubscribe = store.subscribe(note)
        try:
            await self._caches.tried(view, timeout=_LOOK_SECONDS)
            await self._change(store, wanted, store.synced, None)
            yield store, changed
        finally:
            unsubscribe()
            await asyncio.shield(self._caches.release(view))

    async def _change(self, store: Store[Object], wanted: Key, event: asyncio.Event, seconds: float | None) -> None:
        """Return when the event is set, or after so many seconds. Raises Untrusted."""
        pause = _LOOK_SECONDS if seconds is None else seconds
        while not event.is_set():
            if self._caches.is_behind(store.view):
                await self._check_trust(store.view.resource, wanted)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await event.wait()
            if seconds is not None:
                return

    async def _check_trust(self, resource: Resource, wanted: Key) -> None:
        try:
            await self._client.find(resource, wanted.name, namespace=wanted.namespace)
        except Untrusted:
            raise
        except KubeError:
            return  # the watch goes on trying
