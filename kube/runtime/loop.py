"""Control loop: a controller, and the watches that feed its queue.

It is declared as with the builder of controller-runtime:

    loop = ControlLoop("token-invalidator", kind=SECRETS, workers=5)
    secrets = loop.watch(caches, SECRETS_VIEW, enqueue(when=exists))
    accounts = loop.watch(caches, ACCOUNTS_VIEW, enqueue_mapped(partial(secrets_of, secrets)))
    return loop.reconciled_by(Reconciler(client=client, secrets=secrets, accounts=accounts))

A program with one loop calls `run`; others call `start`, run the `controller`, and call `close` at the end. The stores
are acquired with the declaration; handlers are called only when all stores are synced, so that they may read each of
them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import structlog

from kube.errors import Forbidden, KindNotServed, KubeError
from kube.objects import Key
from kube.resources import Resource
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.controller import Controller, Result
from kube.runtime.discovery import Discovery
from kube.runtime.fan_out import Changes, FanOut
from kube.runtime.predicates import Predicate, changed
from kube.runtime.priorities import CHANGE, RESYNC, Priority, any_priority
from kube.runtime.queue import WorkQueue

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")

_AGAIN_SECONDS = 1.0
_LOOKS = (1.0, 2.0, 4.0, 8.0)
"""Seconds of waiting before each lookup after changes of CRDs, or where a kind is defined and not served: it may take a
moment until all of them are served.
"""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Queue = WorkQueue[Key]
EventHandler = Callable[[Queue, Change[T]], None]
"""Adds keys to the queue. Called synchronously for known objects at the start, for each change, and in resyncs."""


class Reconciler(Protocol):
    async def reconcile(self, key: Key, /) -> Result:
        """One pass over the object of the key."""


# --- event handlers

_CHANGED: Predicate[Any] = changed()


def enqueue(when: Predicate[T]) -> EventHandler[T]:
    """Enqueue the object's own key."""

    def handle(queue: Queue, change: Change[T]) -> None:
        if when(change):
            queue.add(change.key, RESYNC if change.initial else CHANGE)

    return handle


def enqueue_own(
    is_own: Callable[[T], bool], *, when: Predicate[T], forget: Callable[[Key], None] = lambda _: None
) -> EventHandler[T]:
    """Enqueue the key of an object that this process may be responsible for.

    A change of the responsibility leads to a pass, even if `when` is false, and ends the back-off of former failures.
    An object that leaves the view and comes back counts as one whose responsibility has changed.

    Args:
        is_own: whether this process is responsible; `always` if the view has no other objects.
        when: other changes that lead to a pass.
        forget: drops state of the object that is remembered outside the queue.
    """
    is_given_or_taken = changed(is_own)

    def handle(queue: Queue, change: Change[T]) -> None:
        is_other = is_given_or_taken(change)
        if is_other:
            queue.forget(change.key)
            forget(change.key)
        if is_other or when(change):
            queue.add(change.key, RESYNC if change.initial else CHANGE)

    return handle


def always(_kept: object) -> bool:
    return True


def enqueue_users(keys: Callable[[Key], Iterable[Key]], *, when: Predicate[T] = _CHANGED) -> EventHandler[T]:
    """Enqueue the objects that refer to one; there may be thousands. Changes in a row are one, see `fan_out`.

    Args: keys: by the key of the object, in the state when it is called, which may be some time after the change.
    """
    return enqueue_users_of(lambda change: (change.key,), keys, when=when)


def enqueue_users_of(
    subjects: Callable[[Change[T]], Iterable[S]],
    keys: Callable[[S], Iterable[Key]],
    *,
    when: Predicate[T] = _CHANGED,
) -> EventHandler[T]:
    """Enqueue the objects that refer to subjects that changed with one; changes in a row are one, as above.

    Args: subjects: changed subjects: few.
    """
    fans: dict[Queue, FanOut[S, T]] = {}

    def handle(queue: Queue, change: Change[T]) -> None:
        if when(change):
            fan = fans.setdefault(queue, FanOut(lambda subject, _: keys(subject), partial(_add_user, queue)))
            for subject in subjects(change):
                fan.add(subject, initial=change.initial)

    return handle


def enqueue_affected(
    keys: Callable[[Key, Changes[T]], Iterable[Key]], *, when: Predicate[T] = _CHANGED
) -> EventHandler[T]:
    """Enqueue the objects that depend on past and present states of one, as by labels that they select; else as above.

    Args: keys: by the key of the object, and its states since the last call.
    """
    fans: dict[Queue, FanOut[Key, T]] = {}

    def handle(queue: Queue, change: Change[T]) -> None:
        if when(change):
            fan = fans.setdefault(queue, FanOut(keys, partial(_add_user, queue)))
            fan.add(change.key, change.old, change.new, initial=change.initial)

    return handle


def _add_user(queue: Queue, user: Key, initial: bool) -> None:
    queue.add(user, RESYNC if initial else CHANGE)


def enqueue_mapped(
    keys: Callable[[Change[T]], Iterable[Key]], *, when: Predicate[T] = _CHANGED, after: float = 0.0
) -> EventHandler[T]:
    """Enqueue a few other objects that a change affects; if they may be many, see above.

    Args: after: seconds, so that simultaneous changes lead to one pass.
    """

    def handle(queue: Queue, change: Change[T]) -> None:
        if when(change):
            priority: Priority = RESYNC if change.initial else CHANGE
            for key in keys(change):
                if after:
                    queue.add_after(key, after, priority)
                else:
                    queue.add(key, priority)

    return handle


def enqueue_after(seconds: float, key: Key, *, when: Predicate[T]) -> EventHandler[T]:
    """Enqueue one key for all objects, after `seconds`, so that simultaneous changes lead to one pass."""

    def handle(queue: Queue, change: Change[T]) -> None:
        if when(change):
            queue.add_after(key, seconds, CHANGE)

    return handle


# --- the loop


@dataclass(slots=True)
class _Watch(Generic[T]):
    caches: Caches
    store: Store[T]
    handler: EventHandler[T] | None
    _unsubscribe: Callable[[], None] | None = None

    def subscribe(self, queue: Queue) -> None:
        if self.handler is not None:
            self._unsubscribe = self.store.subscribe(partial(self.handler, queue))

    def unsubscribe(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def release(self) -> None:
        await self.caches.release(self.store.view)


class ControlLoop:
    """Its metrics exist from its construction on, so construct it where this process leads.

    Args: initial_keys: added at the start, in addition to those of watches; all others are those of `Controller`.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: Resource | None = None,
        workers: int = 1,
        time_limit: float = 180.0,
        max_backoff: float = 1000.0,
        highest: Callable[[Key], Priority] = any_priority,
        initial_keys: Iterable[Key] = (),
        is_repeatable: bool = False,
    ) -> None:
        self._reconciler: Reconciler
        self.controller = Controller(
            name,
            self._reconcile,
            kind=kind,
            concurrency=workers,
            time_limit=time_limit,
            max_backoff=max_backoff,
            highest=highest,
            is_repeatable=is_repeatable,
        )
        self.queue = self.controller.queue
        self._initial_keys = initial_keys
        self._watches: list[_Watch[Any]] = []
        self._releasing: set[asyncio.Task[None]] = set()
        self._has_started = False
        self._on_start: list[Callable[[], Awaitable[None]]] = []
        self._on_close: list[Callable[[], Awaitable[None]]] = []
        self._on_kinds_changed: list[Callable[[str], None]] = []

    # --- declaring

    def watch(self, caches: Caches, view: View[T], handler: EventHandler[T] | None = None) -> Store[T]:
        """Store of a view, until the loop ends; it is needed at the start.

        If the loop has started already, as for kinds that are served later, the first list is not waited for.
        """
        store = caches.acquire(view, needed_at_start=not self._has_started)
        watch = _Watch(caches, store, handler)
        self._watches.append(watch)
        if self._has_started:
            watch.subscribe(self.queue)
        return store

    def unwatch(self, store: Store[Any]) -> None:
        """Give a store back before the loop ends."""
        watch = next(each for each in self._watches if each.store is store)
        self._watches.remove(watch)
        watch.unsubscribe()
        releasing = asyncio.create_task(watch.release())
        self._releasing.add(releasing)
        releasing.add_done_callback(self._releasing.discard)

    def when_served(self, discovery: Discovery, kinds: Sequence[Resource], begin: Callable[[], None]) -> None:
        """Call `begin` as soon as all of these kinds of one group are served: to watch them, for example."""
        late = LateKinds(discovery, kinds, begin=begin)
        self.on_start(late.look)
        self.on_kinds_changed(late.kinds_changed)
        self.on_close(late.close)

    def reconciled_by(self, reconciler: Reconciler) -> "ControlLoop":
        self._reconciler = reconciler
        return self

    def on_start(self, *work: Callable[[], Awaitable[None]]) -> None:
        """Add work at the end of `start`, before there are workers."""
        self._on_start += work

    def on_close(self, *work: Callable[[], Awaitable[None]]) -> None:
        """Add work in `close`, before the stores are given back."""
        self._on_close += work

    def on_kinds_changed(self, *work: Callable[[str], None]) -> None:
        """Add callbacks with the group of CustomResourceDefinitions that were created, changed or deleted."""
        self._on_kinds_changed += work

    # --- running

    async def run(self) -> None:
        """Start, work until cancelled, and close."""
        try:
            await self.start()
            await self.controller.run()
        finally:
            await self.close()

    async def start(self) -> None:
        """Wait until the stores are synced, and subscribe; the controller's workers start after that."""
        for watch in self._watches:
            await watch.store.synced.wait()
        for key in self._initial_keys:
            self.queue.add(key)
        for watch in self._watches:
            watch.subscribe(self.queue)
        self._has_started = True
        for work in self._on_start:
            await work()

    def kinds_changed(self, group: str) -> None:
        for work in self._on_kinds_changed:
            work(group)

    async def close(self) -> None:
        """Give the stores back; the workers have ended.

        Also called if `start` failed or was cancelled, and again if this was: nothing is done twice.
        """
        for watch in self._watches:
            watch.unsubscribe()
        while self._on_close:
            await self._on_close.pop(0)()
        while self._watches:
            await self._watches.pop(0).release()
        await asyncio.gather(*self._releasing)

    def _reconcile(self, key: Key) -> Awaitable[Result]:
        return self._reconciler.reconcile(key)


class LateKinds:
    """Calls `begin` once, as soon as all of some kinds of one group are served."""

    def __init__(self, discovery: Discovery, kinds: Sequence[Resource], *, begin: Callable[[], None]) -> None:
        self._discovery = discovery
        self._kinds = kinds
        self._begin = begin
        self._looking: asyncio.Task[None] | None = None
        self.have_come = False

    async def look(self) -> None:
        """Begin if they are served now; return when the API server has answered."""
        if not self.have_come and await self._are_served() and not self.have_come:
            self.have_come = True
            self._begin()

    def kinds_changed(self, group: str) -> None:
        """Look again after CustomResourceDefinitions of the group were created, changed or deleted."""
        if group == self._kinds[0].group and not self.have_come:
            if self._looking is not None:
                self._looking.cancel()
            self._looking = asyncio.create_task(self._look_soon())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look_soon(self) -> None:
        for seconds in _LOOKS:
            await asyncio.sleep(seconds)
            await self.look()
            if self.have_come:
                return

    async def _is_gone(self, error: KindNotServed) -> bool:
        """Whether the kind is really gone: an API server that starts lists only few groups."""
        try:
            await self._discovery.require_gone(error.api_version, error.kind)
        except Forbidden:
            return True  # then only changes of CRDs lead to another lookup
        except KubeError:
            return False
        return True

    async def _are_served(self) -> bool:
        while True:
            try:
                for kind in self._kinds:
                    await self._discovery.find(kind.api_version, kind.kind)
            except KindNotServed as error:
                if self._looking is None and not await self._is_gone(error):
                    self._looking = asyncio.create_task(self._look_soon())
                return False
            except Forbidden:
                return False
            except KubeError as error:
                # Treating them as missing would discard the state that depends on them.
                log.info("Checking again whether kinds are served", group=self._kinds[0].group, error=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return True
