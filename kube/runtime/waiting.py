"""Waiting for one object, until it is as something needs it, or gone; or until none of several is left.

    waiting = Waiting(client=client, caches=caches, discovery=discovery)
    deployment = await waiting.until_ready(DEPLOYMENTS, Key("shop", "front"), unready, seconds=300)
    await waiting.until_gone(NAMESPACES, Key("", "shop"), seconds=600)
    await waiting.until_none(JOBS, Selection("shop"), seconds=600)

The object is watched, mostly alone, for as long as something waits for it. What is missing is a text, by which whoever
waits can say for what (`report`). That an object is gone is asked of the API server: a watch may be behind. Where there
is no such kind any more, all its objects are gone. While the watch fails, the object is read now and then: no
certificate becomes a good one by waiting, so that ends it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress

from kube.errors import KindGone, KindNotServed, KubeError, Untrusted
from kube.objects import Key, Object, held_by, is_deleting, key, uid
from kube.resources import Resource
from kube.runtime.cache import Caches, Store, View, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.discovery import Discovery
from kube.runtime.handing_over import waits

Unready = Callable[[Object | None], str]
"""What is missing until an object, or None, is ready; empty: nothing. It may raise, which ends the waiting."""
Report = Callable[[str], None]

_UNKNOWN = "nothing is known of it yet"
_NOT_DELETED = "it is not being deleted"
_MOST_NAMED = 5
_LOOK_SECONDS = 5.0
"""Between two looks whether the watch fails."""
_BEHIND_SECONDS = 1.0
"""Between two reads of an object that the watch says is gone, and the API server has."""


def has_to_go(live: Object) -> str:
    """What an object waits for that has to go."""
    return held_by(live) if is_deleting(live) else _NOT_DELETED


class NotInTimeError(ReconcileError):
    """The time is over; the text names the object, and what is missing."""


def _silent(_: str) -> None:
    pass


class Waiting:
    """Waits for objects of one cluster.

    Args: together: kinds of which all objects of a namespace are watched by one watch, while any is waited for.
        What was written must be recognized in what is seen (`since`, or `unready`): the watch may be older.
    """

    def __init__(
        self, *, client: Client, caches: Caches, discovery: Discovery, together: Collection[Resource] = ()
    ) -> None:
        self._client = client
        self._caches = caches
        self._discovery = discovery
        self._together = frozenset(together)
        self._kept: dict[str, set[View[Object]]] = {}

    @asynccontextmanager
    async def keeping(self, namespace: str) -> AsyncIterator[None]:
        """Within it, what was watched together in the namespace once stays watched. Not twice at a time for one."""
        self._kept[namespace] = set()
        try:
            yield
        finally:
            for view in self._kept.pop(namespace):
                await asyncio.shield(self._caches.release(view))

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
        live: Object | None = None

        async def missing(store: Store[Object]) -> str:
            nonlocal live
            if 0 < store.version(wanted) < since:
                return _UNKNOWN
            live = store.get(wanted)
            if live is None:
                try:
                    live = await self.find(resource, wanted)
                except KubeError as error:
                    if or_gone or isinstance(error, Untrusted):
                        raise
                    return f"the API server does not say whether it exists: {error}"
            if live is None and or_gone:
                return ""
            return unready(live) or ("it does not exist" if live is None else "")

        what, view = f"{resource.kind} {wanted}", self._view_of(resource, wanted)
        await self._until(what, view, missing, seconds=seconds, report=report, aim="ready", every=_BEHIND_SECONDS)
        return live or {}

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
            return held(live) if is_deleting(live) else _NOT_DELETED

        what, view = f"{resource.kind} {wanted}", self._view_of(resource, wanted)
        await self._until(what, view, missing, seconds=seconds, report=report, aim="gone", every=_BEHIND_SECONDS)

    async def until_none(
        self,
        resource: Resource,
        selection: Selection,
        *,
        seconds: float,
        missing: Callable[[Object], str] = has_to_go,
        report: Report = _silent,
    ) -> None:
        """Return once the API server says that none of the selected objects is there, or that there is no such kind.

        Args:
            resource: their kind.
            selection: where they are, and their labels.
            seconds: how long to wait at most.
            missing: says what an object waits for; empty: it may stay. It may raise, which ends the waiting.
            report: called with what is left, each time that it changes.

        Raises:
            NotInTimeError: some are left; the text names the first ones, and what they wait for.
            KubeError: the API server does not answer.
        """

        def named(objects: Iterable[Object]) -> str:
            left = [(key(each), reason) for each in objects if (reason := missing(each))]
            more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
            return ", ".join(f"{name} ({reason})" for name, reason in left[:_MOST_NAMED]) + more

        async def reasons(store: Store[Object]) -> str:
            return named(store.values()) or named(await self._discovery.list_if_served(resource, selection))

        what, view = f"what there is of {resource.kind}", _view(resource, selection)
        await self._until(what, view, reasons, seconds=seconds, report=report, aim="gone", every=_BEHIND_SECONDS)

    async def find(self, resource: Resource, wanted: Key) -> Object | None:
        """The object as the API server has it; None: it is not there, or there is no such kind. Raises KubeError."""
        try:
            return await self._client.find(resource, wanted)
        except KindNotServed:
            pass
        try:
            resource = await self._discovery.find_any_version(resource.api_version, resource.kind)
        except KindGone:
            return None
        return await self._client.find(resource, wanted)

    def _view_of(self, resource: Resource, wanted: Key) -> View[Object]:
        its_name = "" if resource in self._together else f"metadata.name={wanted.name}"
        return _view(resource, Selection(wanted.namespace, "", its_name))

    async def _until(
        self,
        what: str,
        view: View[Object],
        missing: Callable[[Store[Object]], Awaitable[str]],
        *,
        seconds: float,
        report: Report,
        aim: str,
        every: float | None = None,
    ) -> None:
        """Return when nothing is missing. Args: every: looks again although nothing changed."""
        last = _UNKNOWN
        limit = asyncio.timeout(seconds)
        try:
            async with limit, self._followed(view) as (store, changed):
                while reason := await missing(store):
                    if reason != last:
                        last = reason
                        report(reason)
                    with waits():
                        await self._change(view, changed, every)
                    changed.clear()
                return
        except TimeoutError:
            if not limit.expired():
                raise
        raise NotInTimeError(f"{what} is not {aim} after {seconds:g} s: {last}")

    @asynccontextmanager
    async def _followed(self, view: View[Object]) -> AsyncIterator[tuple[Store[Object], asyncio.Event]]:
        """What is known of the objects, and an event that is set when that changes."""
        changed = asyncio.Event()
        store = self._caches.acquire(view)
        self._keep(view)
        unsubscribe = store.subscribe(lambda _: changed.set())
        try:
            await self._caches.tried(view, timeout=_LOOK_SECONDS)
            await self._change(view, store.synced, None)
            yield store, changed
        finally:
            unsubscribe()
            await asyncio.shield(self._caches.release(view))

    def _keep(self, view: View[Object]) -> None:
        kept = self._kept.get(view.namespace)
        if kept is not None and view not in kept and view == _view(view.resource, Selection(view.namespace)):
            self._caches.acquire(view)
            kept.add(view)

    async def _change(self, view: View[Object], event: asyncio.Event, seconds: float | None) -> None:
        """Return when the event is set, or after so many seconds. Raises Untrusted."""
        pause = _LOOK_SECONDS if seconds is None else seconds
        while not event.is_set():
            if self._caches.is_behind(view):
                await self._check_trust(view)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await event.wait()
            if seconds is not None:
                return

    async def _check_trust(self, view: View[Object]) -> None:
        selection = Selection(view.namespace, view.label_selector, view.field_selector)
        try:
            await self._client.list_page(view.resource, selection, form=Form.METADATA, limit=1)
        except Untrusted:
            raise
        except KubeError:
            return  # the watch goes on trying


def _view(resource: Resource, selection: Selection) -> View[Object]:
    return View(
        resource,
        without_managed_fields,
        label_selector=selection.label_selector,
        field_selector=selection.field_selector,
        namespace=selection.namespace,
        streams=True,
    )
