"""Wait until one object is ready or gone, or until no selected object is left.

    waiting = Waiting(client=client, caches=caches, discovery=discovery)
    deployment = await waiting.until_ready(DEPLOYMENTS, Key("shop", "front"), unready, seconds=300)
    await waiting.until_gone(NAMESPACES, Key("", "shop"), seconds=600)
    await waiting.until_none(JOBS, Selection("shop"), seconds=600)

The object is watched, mostly alone, for the duration of the wait. A text states the missing conditions, so that the
waiting caller can report it (`report`). The API server has to confirm that an object is gone: a watch may be behind. If
there is no such kind any more, all its objects are gone. While the watch fails, the object is read now and then, and
once more before the time is over; an untrusted certificate ends the wait, since waiting does not make it valid.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress

from kube.errors import KubeError, Untrusted
from kube.objects import Key, Object, held_by, is_deleting, key, uid
from kube.resources import Resource
from kube.runtime.cache import Caches, Store, View, without_managed_fields
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import ReconcileError
from kube.runtime.discovery import Discovery
from kube.runtime.handing_over import waits

Unready = Callable[[Object | None], str]
"""Condition that keeps an object, or None, from being ready; empty if there is none. An exception ends the waiting."""
Report = Callable[[str], None]

_UNKNOWN = "its state is not known yet"
_NOT_DELETED = "it is not being deleted"
_MOST_NAMED = 5
_LOOK_SECONDS = 5.0
"""Interval of checks whether the watch fails."""
_BEHIND_SECONDS = 1.0
"""Interval of reads of an object that is gone according to the watch, but not to the API server."""


def has_to_go(live: Object) -> str:
    """Reason why an object that has to be deleted still exists."""
    return held_by(live) if is_deleting(live) else _NOT_DELETED


class NotInTimeError(ReconcileError):
    """The time is over; the text names the object, and the missing condition."""


def _silent(_: str) -> None:
    pass


class Waiting:
    """Waits for objects of one cluster.

    Args: together: kinds whose objects in a namespace are all watched by one watch, while any is waited for.
        Own writes must be recognizable in observed objects (`since`, or `unready`): the watch may be older.
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
        """Keep the common watches of a namespace within the context. Only once at a time per namespace."""
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
        limit: asyncio.Timeout | None = None,
    ) -> Object:
        """Wait until nothing is missing; return the object.

        Args:
            resource: its kind.
            wanted: its name.
            unready: returns the missing condition.
            seconds: maximum time of waiting.
            since: resourceVersion of the last write; older states are ignored.
            or_gone: whether it may be gone instead; the returned object is empty then.
            report: called with the missing condition, each time that it changes.
            limit: for a caller that moves the end of the time; replaces `seconds`.

        Raises:
            NotInTimeError: it is not ready in time.
            Untrusted: a certificate is not accepted.
            Exception: an error of `unready`.
        """
        live: Object | None = None

        def evaluated() -> str:
            if live is None and or_gone:
                return ""
            return unready(live) or ("it does not exist" if live is None else "")

        async def look() -> str:
            nonlocal live
            live = await self.find(resource, wanted)
            return evaluated()

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
                    return f"its existence can't be determined: {error}"
            return evaluated()

        what, view = f"{resource.kind} {wanted}", self._view_of(resource, wanted)
        await self._until(what, view, missing, look, limit=limit, seconds=seconds, report=report, aim="ready")
        return live or {}

    async def until_gone(
        self,
        resource: Resource,
        wanted: Key,
        *,
        seconds: float,
        expected_uid: str = "",
        held: Callable[[Object], str] = held_by,
        report: Report = _silent,
        limit: asyncio.Timeout | None = None,
    ) -> None:
        """Return once the API server reports that it does not exist, or is another one of that name.

        Args:
            resource: its kind.
            wanted: its name.
            seconds: maximum time of waiting.
            expected_uid: uid of the object; empty for any of that name.
            held: returns the reason why it still exists while it is being deleted; an exception ends the waiting.
            report: called with the reason, each time that it changes.
            limit: as for `until_ready`.

        Raises:
            NotInTimeError: it is not gone in time.
        """

        def reason(live: Object | None) -> str:
            if live is None or expected_uid not in ("", uid(live)):
                return ""
            return held(live) if is_deleting(live) else _NOT_DELETED

        async def look() -> str:
            return reason(await self.find(resource, wanted))

        async def missing(store: Store[Object]) -> str:
            return reason(store.get(wanted)) or await look()

        what, view = f"{resource.kind} {wanted}", self._view_of(resource, wanted)
        await self._until(what, view, missing, look, limit=limit, seconds=seconds, report=report, aim="gone")

    async def until_none(
        self,
        resource: Resource,
        selection: Selection,
        *,
        seconds: float,
        missing: Callable[[Object], str] = has_to_go,
        report: Report = _silent,
    ) -> None:
        """Return once the API server reports that no selected object exists, or that there is no such kind.

        Args:
            resource: their kind.
            selection: their namespace and labels.
            seconds: maximum time of waiting.
            missing: returns the reason why an object still exists; empty: it may stay. An exception ends the waiting.
            report: called with the remaining objects, each time that they change.

        Raises:
            NotInTimeError: some are left; the text names the first ones, and the reasons.
        """

        def named(objects: Iterable[Object]) -> str:
            left = [(key(each), reason) for each in objects if (reason := missing(each))]
            more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
            return ", ".join(f"{name} ({reason})" for name, reason in left[:_MOST_NAMED]) + more

        async def look() -> str:
            return named(await self._discovery.list_if_served(resource, selection))

        async def reasons(store: Store[Object]) -> str:
            return named(store.values()) or await look()

        what, view = f"the objects of {resource.kind}", _view(resource, selection)
        await self._until(what, view, reasons, look, seconds=seconds, report=report, aim="gone")

    async def find(self, resource: Resource, wanted: Key) -> Object | None:
        """Object as the API server has it; None: it does not exist, or there is no such kind."""
        return await self._discovery.find_if_served(resource, wanted)

    def _view_of(self, resource: Resource, wanted: Key) -> View[Object]:
        its_name = "" if resource in self._together else f"metadata.name={wanted.name}"
        return _view(resource, Selection(wanted.namespace, "", its_name))

    async def _until(
        self,
        what: str,
        view: View[Object],
        missing: Callable[[Store[Object]], Awaitable[str]],
        look: Callable[[], Awaitable[str]],
        *,
        seconds: float,
        limit: asyncio.Timeout | None = None,
        report: Report,
        aim: str,
    ) -> None:
        """Return when nothing is missing. Args: look: the same as `missing`, by the API server instead of the watch."""
        last, limit = _UNKNOWN, limit or asyncio.timeout(seconds)
        try:
            async with limit, self._followed(view) as (store, changed):
                while reason := await missing(store):
                    if reason != last:
                        last = reason
                        report(reason)
                    with waits():
                        await self._change(view, changed, _BEHIND_SECONDS)
                    changed.clear()
                return
        except TimeoutError:
            if not limit.expired():
                raise
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                if not (last := await look()):
                    return
        raise NotInTimeError(f"{what} is not {aim} after {seconds:g} s: {last}")

    @asynccontextmanager
    async def _followed(self, view: View[Object]) -> AsyncIterator[tuple[Store[Object], asyncio.Event]]:
        """Store of the objects, and an event that is set when it changes."""
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
        """Return when the event is set, or after `seconds`. Raises Untrusted."""
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
            return  # the watch keeps trying


def _view(resource: Resource, selection: Selection) -> View[Object]:
    return View(
        resource,
        without_managed_fields,
        label_selector=selection.label_selector,
        field_selector=selection.field_selector,
        namespace=selection.namespace,
        streams=True,
    )
