"""In-use protection: an object that others refer to is not deleted before the last of them has gone.

    shoots = Users(loop, caches, SHOOTS_VIEW, BY_EXPOSURE_CLASS)
    Protection(context, exposure_classes, users=(shoots,), held_by=..., event="Normal", reporter=...)

Objects get a finalizer. For one in deletion, an Event lists the users, once for each list of them. Users are watched,
so nothing is polled: the finalizer is removed with the last user. Watches of several kinds report changes in any order.
So the users are listed from the API server at the start of a deletion, and before the finalizer is removed, which is
final.
"""

from collections.abc import Callable, Sequence

import structlog

from agent.controller_manager.context import Context
from gardener.keys import GARDENER_FINALIZER
from kube.objects import Key, Object, finalizers, is_deleting, key, uid
from kube.repeats import Repeats
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client, Selection
from kube.runtime.controller import Done, Result
from kube.runtime.events import EventType
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.loop import ControlLoop, EventHandler, enqueue, enqueue_mapped
from kube.runtime.predicates import any_of, now, went

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

REASON = "ResourceReferenced"


async def look(client: Client, store: Store[Object], refers: Callable[[Object], bool], *, namespace: str = "") -> None:
    """Add the present users, of a namespace or of all, to the cache."""
    async for page in client.pages(store.view.resource, Selection(namespace=namespace)):
        for obj in page:
            if refers(obj):
                store.observe(obj)


class Users:
    """Objects of a kind that may refer to protected ones; the control loop watches them.

    Args:
        index: index of the view, by keys of the referenced objects.
        nearby: whether they refer to objects of their own namespace only.
    """

    def __init__(
        self,
        loop: ControlLoop,
        caches: Caches,
        view: View[Object],
        index: str,
        *,
        nearby: bool = False,
    ) -> None:
        self._index = index
        self._nearby = nearby
        self._references = dict(view.indexes)[index]
        self._store = loop.watch(caches, view, enqueue_mapped(self._referred))

    def of(self, used: Key) -> list[Key]:
        """Users of an object, in their order."""
        return self._store.keys_by_index(self._index, used)

    async def look(self, client: Client, used: Key) -> None:
        """Add the present users of an object to the cache."""
        namespace = used.namespace if self._nearby else ""
        await look(client, self._store, lambda obj: used in self._references(obj), namespace=namespace)

    def _referred(self, change: Change[Object]) -> list[Key]:
        """Objects referenced either before or after the change, but not both."""
        old, new = (set() if obj is None else set(self._references(obj)) for obj in (change.old, change.new))
        return [key for key in old ^ new if isinstance(key, Key)]


class Protection:
    """Protect objects in use; it is a complete reconciler for kinds that need nothing else.

    Args:
        store: protected objects.
        users: all kinds that may refer to them.
        held_by: returns why an object in deletion is kept, with its users; empty if it can go.
        event: type of the Event about it; None if it is only logged.
        reporter: reporter of the Events.
    """

    def __init__(
        self,
        context: Context,
        store: Store[Object],
        *,
        users: Sequence[Users],
        held_by: Callable[[Key], str],
        finalizer: str = GARDENER_FINALIZER,
        event: EventType | None = None,
        reporter: str = "",
    ) -> None:
        self._client = context.garden.client
        self._recorder = context.recorder
        self._store = store
        self._resource = store.view.resource
        self._users = users
        self._finalizer = finalizer
        self._held_by = held_by
        self._event = event
        self._reporter = reporter
        self._reported: Repeats[tuple[str, str]] = Repeats()
        """Objects that are held: uid and reason."""

    async def reconcile(self, name: Key) -> Result:
        obj = self._store.get(name)
        if obj is None or not is_deleting(obj):
            self._reported.forget(name)
        if obj is not None:
            await (self._release(obj) if is_deleting(obj) else self._ensure(obj))
        return Done()

    async def _ensure(self, obj: Object) -> None:
        self._store.observe(await ensure_finalizer(self._client, self._resource, obj, self._finalizer))

    async def _release(self, obj: Object) -> None:
        """Remove the finalizer from an object in deletion, unless it has users."""
        if self._finalizer not in finalizers(obj):
            return
        name = key(obj)
        if not self._reported.reported(name) or not self._held_by(name):
            for users in self._users:
                await users.look(self._client, name)
        if reason := self._held_by(name):
            self._report(obj, reason)
            return
        left = await remove_finalizer(self._client, self._resource, obj, self._finalizer)
        self._reported.forget(name)
        if left is not None:
            self._store.observe(left)

    def _report(self, obj: Object, reason: str) -> None:
        if not self._reported.news(key(obj), [(uid(obj), reason)]):
            return
        log.info("The deletion waits for users", reason=reason)
        if self._event is not None:
            self._recorder.event(obj, self._event, REASON, reason, reporter=self._reporter)


def enqueue_unprotected(finalizer: str = GARDENER_FINALIZER) -> EventHandler[Object]:
    """Enqueue objects that lack the finalizer, are being deleted or have gone."""

    def lacks_finalizer(obj: Object) -> bool:
        return finalizer not in finalizers(obj)

    return enqueue(when=any_of(went, now(is_deleting), now(lacks_finalizer)))
