"""A control loop: a controller, and the watches that feed its queue.

It is declared as with the builder of controller-runtime:

    loop = ControlLoop("token-invalidator", kind=SECRETS, workers=5)
    secrets = loop.watch(caches, SECRETS_VIEW, enqueue(when=exists))
    accounts = loop.watch(caches, ACCOUNTS_VIEW, enqueue_mapped(partial(secrets_of, secrets)))
    return loop.reconciled_by(Reconciler(client=client, secrets=secrets, accounts=accounts))

A program with one loop calls `run`; others call `start`, run the `controller`, and call `close` at the end. The stores
are acquired with the declaration; handlers hear of changes only when all of them are synced, so that they may look into
each other's.
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
"""Seconds of waiting before each look after news about CRDs, or where a kind is defined and not served: it may take a
moment until all of them are served.
"""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

Queue = WorkQueue[Key]
EventHandler = Callable[[Queue, Change[T]], None]
"""Adds keys to the queue. Called synchronously for what is known at the start, for each change, and in resyncs."""


class Reconciler(Protocol):
    async def reconcile(self, key: Key, /) -> Result:
        """One pass over what the key names."""


# --- event handlers

_CHANGED: Predicate[Any] = changed()


def enqueue(when: Predicate[T]) -> EventHandler[T]:
    """The object's own key."""

    def handle(queue: Queue, change: Change[T]) -> None:
        if when(change):
            queue.add(change.key, RESYNC if change.initial else CHANGE)

    return handle


def enqueue_own(
    is_own: Callable[[T], bool], *, when: Predicate[T], forget: Callable[[Key], None] = lambda _: None
) -> EventHandler[T]:
    """The key of an object that this process may be responsible for.

    A change of the responsibility leads to a pass, whatever `when` says, and ends the back-off of former failures. An
    object that leaves the view and comes back is one whose responsibility has changed.

    Args:
        is_own: whether this process is responsible; where the view has no other objects, `always`.
        when: which other changes lead to a pass.
        forget: drops what is remembered of the object beside the queue.
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
    """The keys of objects that refer to one, of which there may be thousands; changes in a row are one, see `fan_out`.

    Args: keys: by the key of the object, as things are when it is called, which may be some time after the change.
    """
    return enqueue_users_of(lambda change: (change.key,), keys, when=when)


def enqueue_users_of(
    subjects: Callable[[Change[T]], Iterable[S]],
    keys: Callable[[S], Iterable[Key]],
    *,
    when: Predicate[T] = _CHANGED,
) -> EventHandler[T]:
    """The keys of objects that refer to what has changed with one; changes in a row are one, as above.

    Args: subjects: what has changed: few.
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
    """The keys of objects that depend on how one was and is, as by labels that they select; otherwise as above.

    Args: keys: by the key of the object, and its states since they were asked for last.
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
    """The keys of a few other objects that a change leads to; if they may be many: above.

    Args: after: seconds, so that what changes together is looked at together.
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
    """One key for all objects, after so many seconds, so that what changes together is looked at together."""

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

    Args: initial_keys: added at the start, whatever is watched; all others are those of `Controller`.
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
        """The store of a view, until the loop ends; it is needed at the start.

        If the loop has started already, as for kinds that come late, the first list is not waited for.
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
        """Call `begin` as soon as all of these kinds of one group are served: to watch them, say."""
        late = LateKinds(discovery, kinds, begin=begin)
        self.on_start(late.look)
        self.on_kinds_changed(late.kinds_changed)
        self.on_close(late.close)

    def reconciled_by(self, reconciler: Reconciler) -> "ControlLoop":
        self._reconciler = reconciler
        return self

    def on_start(self, *work: Callable[[], Awaitable[None]]) -> None:
        """Done last in `start`, before there are workers."""
        self._on_start += work

    def on_close(self, *work: Callable[[], Awaitable[None]]) -> None:
        """Done in `close` before the stores are given back."""
        self._on_close += work

    def on_kinds_changed(self, *work: Callable[[str], None]) -> None:
        """Called with a group whose CustomResourceDefinitions came, changed or went in a cluster."""
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

        Also called if `start` failed or was cancelled, and again if this was: what is done is not done twice.
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
        """Begin, if they are served now; returns when the API server has said whether they are."""
        if not self.have_come and await self._are_served() and not self.have_come:
            self.have_come = True
            self._begin()

    def kinds_changed(self, group: str) -> None:
        """CustomResourceDefinitions of the group came, changed or went."""
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
        """Whether no news of it are to be expected: an API server that starts lists few groups."""
        try:
            await self._discovery.require_gone(error.api_version, error.kind)
        except Forbidden:
            return True  # then news are all there is
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
                # To take them for missing would be to forget what hangs on them.
                log.info("Asking again whether kinds are served", group=self._kinds[0].group, error=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return True
