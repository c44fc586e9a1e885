"""Objects of a cluster, kept in memory by watches and shared between users.

A `Store` holds the objects of one kind, each reduced by a projection to the parts that its users read, within bounds
(`kube.packing`). `Caches` owns the stores of a cluster: a store starts to watch with its first user and stops with
its last. Handlers are called synchronously, in the order of the changes; they only map a change to queue keys. An
object that can't be read or understood completely is logged and remembered (`Store.unread`), and no other is affected.

Two rules keep a store equal to the server for any order of arrival. An object never gets older: a resourceVersion
smaller than the known one is dropped, and so is an object given to `observe` (the answer to an own write, for
read-your-writes) if the watch is past it. And an object that is missing in a complete list is gone, unless it was
written after the list was made.

The history of a cluster that was restored from a backup is rewound: its objects get older. If one watch detects that
(see `kube.runtime.watch`), all start over. Until then, `unverified`, nothing derived from the stores may be written;
and from then on, `history_rewound`, until all state remembered outside the stores has been forgotten.
"""

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Hashable, Iterable, Iterator, Sequence
from contextvars import Context
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar, cast, overload

import structlog

from kube.errors import ApiError, Forbidden, HistoryRewound, KindNotServed, KubeError, Unauthorized, Unreachable, remedy
from kube.objects import Key, Object, key, metadata, resource_version
from kube.packing import Packed, bounded
from kube.resources import Resource
from kube.runtime.client import Client, Form, Selection
from kube.runtime.codec import InPart, nesting_less
from kube.runtime.watch import Deleted, Event, ListBegins, ListEnds, Present, Timings, Watcher
from kube.runtime.yielding import Yielding

T = TypeVar("T")

_RELISTED_SECONDS = 30.0
_NOT_NOW = frozenset({429, 502, 503, 504})
_RESTART_SECONDS = 5.0
_INDEXED = 1000
"""Maximum number of values of an index for one object."""

log = structlog.get_logger("cache")


def without_managed_fields(obj: Object) -> Object:
    """Projection to whole objects."""
    metadata(obj).pop("managedFields", None)
    return obj


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """Change of an object: `old` is None if it was unknown, `new` if it is gone; both are equal for a resync."""

    key: Key
    old: T | None
    new: T | None
    initial: bool
    """Whether it comes from a list or a resync instead of a watch event."""


Handler = Callable[[Change[T]], None]
Indexer = Callable[[Any], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class View(Generic[T]):
    """Content of a store. Users with equal views share one store and its watches.

    Args:
        project: returns the part to keep of an object; it may change and return its argument. Compared by identity.
        indexes: name -> function from the projection to the values under which `by_index` finds it.
        streams: existing objects come with the watch instead of a list, see `kube.runtime.watch`.
        namespace: the only watched one, regardless of those of the caches; empty: all of these.
        most: limit for the kept part of an object, in bytes as MessagePack, unless it is JSON; larger ones are unknown.
        packs: whether large JSON is packed; not for kinds that only operators write, and many read.
        managed_fields: whether objects have them when they are projected.
        is_optional: whether its users work without it: after a refusal, it is tried again only with new credentials.
    """

    resource: Resource
    project: Callable[[Object], T]
    form: Form = Form.WHOLE
    label_selector: str = ""
    field_selector: str = ""
    indexes: tuple[tuple[str, Indexer], ...] = ()
    streams: bool = False
    namespace: str = ""
    most: int = 16 << 10
    packs: bool = True
    managed_fields: bool = False
    is_optional: bool = False


class _Values(Sequence[T]):
    """Kept values of some objects, unpacked one after the other."""

    def __init__(self, kept: Sequence[T | Packed]) -> None:
        self._kept = kept

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[T]:
        return map(_seen, self._kept)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> "_Values[T]": ...
    def __getitem__(self, index: int | slice) -> "T | _Values[T]":
        return _Values(self._kept[index]) if isinstance(index, slice) else _seen(self._kept[index])


def _seen(kept: T | Packed) -> T:
    return cast("T", kept.unpacked()) if type(kept) is Packed else cast("T", kept)


class Store(Generic[T]):
    def __init__(self, view: View[T], *, needed_at_start: bool = True) -> None:
        self.view = view
        self.needed_at_start = needed_at_start
        self.synced = asyncio.Event()
        self._objects: dict[Key, T | Packed] = {}
        self._versions: dict[Key, int] = {}
        self.unread: dict[Key, int] = {}
        """Version of each object that could not be read completely, or not be understood."""
        self._indexes: dict[str, dict[Hashable, set[Key]]] = {name: {} for name, _ in view.indexes}
        self._handlers: list[Handler[T]] = []
        self._sources: dict[str, Source[T]] = {}

    # --- reading

    def get(self, wanted: Key) -> T | None:
        return _seen(self._objects.get(wanted))

    def version(self, wanted: Key) -> int:
        """The resourceVersion of the known state of an object, 0 if unknown."""
        return self._versions.get(wanted, 0)

    def newest(self, wanted: Key) -> int:
        """Newest version observed, even if the object could not be understood in it."""
        return max(self.version(wanted), self.unread.get(wanted, 0))

    def all_keys(self) -> Collection[Key]:
        return self._objects.keys()

    def items(self) -> Iterator[tuple[Key, T]]:
        return ((k, _seen(kept)) for k, kept in self._objects.items())

    def values(self) -> Sequence[T]:
        return _Values(list(self._objects.values()))

    def keys_by_index(self, name: str, value: Hashable) -> list[Key]:
        return sorted(self._indexes[name].get(value, ()))

    def values_by_index(self, name: str, value: Hashable) -> Sequence[T]:
        return _Values([self._objects[k] for k in self.keys_by_index(name, value)])

    def by_index(self, name: str, value: Hashable) -> Iterator[tuple[Key, T]]:
        found = [(k, self._objects[k]) for k in self.keys_by_index(name, value)]
        return ((k, _seen(kept)) for k, kept in found)

    def count(self, name: str, value: Hashable) -> int:
        """Number of objects under a value of an index."""
        return len(self._indexes[name].get(value, ()))

    def __len__(self) -> int:
        return len(self._objects)

    # --- listening

    def subscribe(self, handler: Handler[T]) -> Callable[[], None]:
        """Call the handler for all known objects, then for each change. Returns a function that unsubscribes."""
        self._handlers.append(handler)
        for k, kept in list(self._objects.items()):
            self._call(handler, Change(key=k, old=None, new=_seen(kept), initial=True))
        return lambda: self._handlers.remove(handler)

    def resync(self) -> None:
        """Call all handlers for all objects again."""
        for k, kept in list(self._objects.items()):
            value: T = _seen(kept)
            self._notify(Change(key=k, old=value, new=value, initial=True))

    # --- writing

    def observe(self, obj: Object) -> None:
        """Take over the answer to an own write, without waiting for the watch."""
        source = self._sources.get(key(obj).namespace) or self._sources.get("")
        # Older versions were reported by the watch already; the object may be gone since.
        if source is not None and resource_version(obj) > source.version:
            self._put(obj, initial=False)

    def source(self, namespace: str) -> "Source[T]":
        """Add a feed of this store; the store is synced once all its sources had a complete list."""
        source = self._sources[namespace] = Source(self, namespace)
        return source

    def _put(self, obj: Object, *, initial: bool) -> Key:
        k, version = key(obj), resource_version(obj)
        if version and version <= self._versions.get(k, 0):
            return k
        if self.unread.get(k) == version and k not in self._objects:
            return k  # as before
        old, is_whole = self.get(k), not isinstance(obj, InPart)
        try:
            new = self.view.project(obj if is_whole else dict(obj))
            values = [(self._indexes[name], _indexed(indexer, new)) for name, indexer in self.view.indexes]
            kept = bounded(new, most=self.view.most) if self.view.packs else new
        except Exception as error:  # noqa: BLE001 - one object must not end the watch of all others
            if is_whole and (part := nesting_less(obj)) is not None:
                return self._put(part, initial=initial)
            known = "in its previous state" if k in self._objects else "not at all"
            log.error(f"An object can't be parsed; cached {known}", error=error, object=self._name(k))
            self.unread[k] = version
            return k
        if is_whole:
            self.unread.pop(k, None)
        else:
            if k not in self.unread:
                log.warning(
                    "Ignored fields of an object with too deep nesting or invalid values",
                    object=self._name(k),
                )
            self.unread[k] = version
        if k in self._objects:
            self._unindex(k, cast("T", old))
        else:
            k = Key(sys.intern(k.namespace), k.name)  # so that all objects of a namespace share its name
        self._objects[k], self._versions[k] = kept, version
        for index, found in values:
            for value in found:
                index.setdefault(value, set()).add(k)
        self._notify(Change(key=k, old=old, new=new, initial=initial))
        return k

    def _remove(self, k: Key, version: int | None, *, initial: bool) -> None:
        """Forget an object that was deleted at `version`, unless it was written again since; None: in any case."""
        if version is None or version >= self.unread.get(k, 0):
            self.unread.pop(k, None)
        # The kept value may be None.
        if k not in self._objects or (version is not None and version < self._versions[k]):
            return
        old: T = _seen(self._objects.pop(k))
        del self._versions[k]
        self._unindex(k, old)
        self._notify(Change(key=k, old=old, new=None, initial=initial))

    def _unindex(self, k: Key, old: T) -> None:
        for name, indexer in self.view.indexes:
            index = self._indexes[name]
            for value in _indexed(indexer, old):
                index[value].discard(k)
                if not index[value]:
                    del index[value]

    def _notify(self, change: Change[T]) -> None:
        for handler in tuple(self._handlers):
            self._call(handler, change)

    def _call(self, handler: Handler[T], change: Change[T]) -> None:
        try:
            handler(change)
        except Exception as error:  # noqa: BLE001 - one object must not end the watch of all others
            log.error("An event handler failed", error=error, object=self._name(change.key))

    def _name(self, k: Key) -> str:
        return f"{self.view.resource.kind} {k}"


def _indexed(indexer: Indexer, value: object) -> set[Hashable]:
    """Values under which an object is found: the first ones of too many."""
    return set(islice(indexer(value), _INDEXED))


async def listed(client: Client, view: View[T], *namespaces: str) -> Store[T]:
    """Store with the current objects of these namespaces or all, read once and not updated."""
    store = Store(view)
    for namespace in namespaces or ("",):
        selection = Selection(namespace, view.label_selector, view.field_selector)
        source = store.source(namespace)
        source.apply(ListBegins(0))
        async for page in client.pages(view.resource, selection, form=view.form):
            for obj in page:
                source.apply(Present(obj))
        source.apply(ListEnds(0))
    return store


class Source(Generic[T]):
    """Feed of one watcher into a store: the objects of one namespace, or of all (empty)."""

    def __init__(self, store: Store[T], namespace: str) -> None:
        self._store = store
        self._namespace = namespace
        self._listed: set[Key] | None = None
        self.complete = False
        self.version = 0
        """Everything that happened up to this resourceVersion is in the store."""

    def apply(self, event: Event) -> None:
        match event:
            case ListBegins(version, is_relist):
                if is_relist or version < self.version:
                    self._store._versions = dict.fromkeys(self._store._versions, 0)  # noqa: SLF001 - one thing
                self._listed, self.version = set(), version
            case Present(obj):
                k = self._store._put(obj, initial=self._listed is not None)  # noqa: SLF001
                if self._listed is None:
                    self.version = resource_version(obj)
                else:
                    self._listed.add(k)
            case Deleted(obj):
                self.version = resource_version(obj)
                self._store._remove(key(obj), self.version, initial=False)  # noqa: SLF001
            case ListEnds(version):
                self._end_list(version)

    def start_over(self) -> None:
        """Treat the known state as unreliable until a list has come."""
        self.complete, self._listed, self.version = False, None, 0
        self._store.synced.clear()

    def _end_list(self, version: int | None) -> None:
        listed, self._listed = self._listed or set(), None
        self.version = max(self.version, version or 0)  # a stream reports it only now
        known = {**self._store.unread, **dict.fromkeys(self._store.all_keys())}
        for k in (k for k in known if k not in listed):
            if not self._namespace or k.namespace == self._namespace:
                self._store._remove(k, version, initial=True)  # noqa: SLF001
        self.complete = True
        if all(source.complete for source in self._store._sources.values()):  # noqa: SLF001
            self._store.synced.set()


@dataclass(slots=True)
class _Feed:
    source: Source[Any]
    watcher: Watcher
    task: asyncio.Task[None]


@dataclass(slots=True)
class _Running:
    store: Store[Any]
    feeds: list[_Feed]
    resync: asyncio.Task[None]
    users: int = 0

    @property
    def watchers(self) -> list[Watcher]:
        return [feed.watcher for feed in self.feeds]

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [self.resync, *(feed.task for feed in self.feeds)]

    @property
    def is_behind(self) -> bool:
        if self.is_refused:
            return False  # nothing can be done about it; `refused` reports it
        return not self.store.synced.is_set() or any(watcher.failing for watcher in self.watchers)

    @property
    def is_refused(self) -> bool:
        return any(watcher.is_refused for watcher in self.watchers)


class Caches:
    """Stores of one cluster.

    Args:
        namespaces: restriction of namespaced kinds, one watch each; empty: all, with one watch.
        resync_period: seconds after which handlers are called for everything again, ± 10 %.
        on_history_rewound: called when `history_rewound` is set.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Sequence[str] = (),
        resync_period: float = 24 * 3600.0,
        timings: Timings | None = None,
        on_history_rewound: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client
        self._on_history_rewound = on_history_rewound
        self._namespaces = tuple(dict.fromkeys(namespaces))
        self._resync_period = resync_period
        self._timings = timings
        self._running: dict[View[Any], _Running] = {}
        self._unverified: set[Watcher] = set()
        self._verifying = asyncio.Lock()
        self._is_closed = False
        self._relisting: list[Store[Any]] = []
        """Stores that have to be listed before anything is written, since versions went back."""
        self._listing_since = 0.0
        self._is_away_reported = False
        self._reads_refused: set[Resource] = set()
        self._refusals_logged: set[Resource] = set()
        self.history_rewound = asyncio.Event()
        """Set when the history of the cluster was rewound; cleared when all that was known before is forgotten."""

    # --- state that may be outdated

    @property
    def unverified(self) -> bool:
        """Whether the stores have to be verified before anything derived from them is written.

        Only kinds that the API server stores itself count: the outage of another server must not block all writes.
        """
        return bool(self._unverified) or self.history_rewound.is_set() or self._is_relisting()

    async def verify(self) -> None:
        """Return when the stores are verified, as far as the API server knows.

        Raises:
            HistoryRewound: the history of the cluster was rewound, or may have been.
            Unreachable: the API server does not answer.
        """
        async with self._verifying:
            unverified = set(self._unverified)
            await asyncio.gather(*map(_verify, unverified))
            self._unverified -= unverified
            for watcher in unverified:
                watcher.wake()
        if self.history_rewound.is_set() or self._is_relisting():
            # The decision to write was based on state that may be outdated.
            raise HistoryRewound(
                "the cluster may have been restored from a backup; wait until it has been read again, no writes "
                "until then"
            )

    def _mark_unverified(self, watcher: Watcher) -> None:
        if _is_own(watcher.resource):
            self._unverified.add(watcher)

    def _history_rewound(self, watcher: Watcher) -> None:
        """Let all watches start over if one of them detects that the history was, or may have been, rewound.

        Only if its kind is stored by the API server itself, though: other servers may have their own version counters.
        """
        if not _is_own(watcher.resource):
            return
        log.warning(
            "The cluster may have been restored from a backup; listing all objects again",
            resource=str(watcher.resource),
        )
        self.history_rewound.set()
        self._on_history_rewound()
        self._list_anew()

    def _older_list(self, watcher: Watcher) -> None:
        """List all kinds again: until then, the known state may never have been."""
        if _is_own(watcher.resource):
            self._list_anew()
            self._relisting = [running.store for running in self._running.values()]
            self._listing_since = time.monotonic()

    def _is_relisting(self) -> bool:
        """Whether lists are still outstanding; a kind that can't be listed must not block writes of others for ever."""
        if self._relisting and time.monotonic() - self._listing_since < _RELISTED_SECONDS:
            self._relisting = [store for store in self._relisting if not store.synced.is_set()]
        else:
            self._relisting = []
        return bool(self._relisting)

    def _list_anew(self) -> None:
        self._unverified.clear()
        for running in self._running.values():
            for feed in running.feeds:
                feed.watcher.start_over()
                feed.source.start_over()
                feed.task.cancel()
                feed.task = _create_task(_feed(feed.source, feed.watcher))

    def _start_failure(self, watcher: Watcher, error: KubeError) -> None:
        """Log failures that need an operator as errors: an outage or rejected credentials once, not for each kind."""
        if isinstance(error, Unreachable):
            if not self._is_away_reported:
                self._is_away_reported = True
                log.error("The API server can't be reached; trying again", error=str(error), remedy=remedy(error, ""))
        elif isinstance(error, Unauthorized):
            if not self._is_away_reported:
                self._is_away_reported = True
                message = "The API server does not accept the credentials; trying again"
                log.error(message, error=str(error), remedy=remedy(error, ""))
        elif isinstance(error, Forbidden):
            name = _name_of(watcher.resource)
            advice = remedy(error, f"list and watch {name}")
            log.error("Reading objects is forbidden; trying again", resource=name, error=str(error), remedy=advice)

    def _watch_refused(self, watcher: Watcher, error: Forbidden) -> None:
        self._log_refusal(watcher.resource, "list and watch", error)

    def _log_refusal(self, resource: Resource, verbs: str, error: Forbidden) -> None:
        if resource in self._refusals_logged:
            return
        self._refusals_logged.add(resource)
        name = _name_of(resource)
        message = "Reading objects is forbidden; working without them"
        log.warning(message, resource=name, error=str(error), remedy=remedy(error, f"{verbs} {name}"))

    def note_read(self, resource: Resource, refusal: Forbidden | None) -> None:
        """Note whether an object may be read that the program can do without; a refusal is logged once per kind."""
        if refusal is None:
            self._reads_refused.discard(resource)
        else:
            self._reads_refused.add(resource)
            self._log_refusal(resource, "get", refusal)

    def refused(self) -> set[Resource]:
        """Kinds that the program does without, since it may not read them."""
        watched = {view.resource for view, running in self._running.items() if running.is_refused}
        return watched | self._reads_refused

    # --- stores

    def covers(self, resource: Resource, namespace: str) -> bool:
        """Whether objects of that namespace are in the stores."""
        return not resource.namespaced or not self._namespaces or namespace in self._namespaces

    def acquire(self, view: View[T], *, needed_at_start: bool = False) -> Store[T]:
        """Store of a view, watching from the first user on; not synced yet when it is new.

        Raises: Unreachable: after `close`.
        """
        if self._is_closed:
            raise Unreachable("the connection to this cluster is closed")
        running = self._running.get(view)
        if running is None:
            running = self._running[view] = self._start(view, needed_at_start)
        running.users += 1
        return running.store

    async def release(self, view: View[Any]) -> None:
        """Give a store back; the watches stop with its last user. After `close` this does nothing."""
        if self._is_closed:
            return
        running = self._running[view]
        running.users -= 1
        if running.users == 0:
            del self._running[view]
            self._unverified.difference_update(running.watchers)
            self._relisting = [store for store in self._relisting if store is not running.store]
            await _stop(running.tasks)

    async def tried(self, view: View[Any], *, timeout: float) -> None:
        """Wait until the watches of a view have their lists, or failed to get them, at most `timeout` seconds."""
        watchers = self._running[view].watchers
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await asyncio.gather(*(watcher.tried.wait() for watcher in watchers))

    def is_behind(self, view: View[Any]) -> bool:
        """Whether the store may lag behind the cluster: it is not complete yet, or a watch fails."""
        running = self._running.get(view)
        return running is None or running.is_behind

    @contextlib.asynccontextmanager
    async def use(self, view: View[T]) -> AsyncIterator[Store[T]]:
        """Synced store for the duration of a block."""
        store = self.acquire(view)
        try:
            await store.synced.wait()
            yield store
        finally:
            await self.release(view)

    def wake(self, group: str | None = None) -> None:
        """End the back-off of watches: of a group whose CRDs changed, or of all since there are new credentials."""
        for view, running in self._running.items():
            if group is None or view.resource.group == group:
                for watcher in running.watchers:
                    watcher.wake()

    def behind(self) -> Iterator[tuple[Resource, bool]]:
        """Resource of each store, and whether the store may lag behind: it is not complete yet, or a watch fails."""
        for view, running in list(self._running.items()):
            yield view.resource, running.is_behind

    def blind(self) -> list[Store[Any]]:
        """Stores whose watches can't continue with the data from the API server."""
        return [
            running.store for running in self._running.values() if any(watcher.is_blind for watcher in running.watchers)
        ]

    def stores(self) -> Iterator[Store[Any]]:
        return (running.store for running in list(self._running.values()))

    async def close(self) -> None:
        """Stop all watches, even if their stores still have users."""
        self._is_closed = True
        tasks = [task for running in self._running.values() for task in running.tasks]
        self._running.clear()
        await _stop(tasks)

    def _start(self, view: View[T], needed_at_start: bool) -> _Running:
        store = Store(view, needed_at_start=needed_at_start)
        running = _Running(store=store, feeds=[], resync=_create_task(self._resync(store)))
        for namespace in self._namespaces_of(view):
            watcher = Watcher(
                self._client,
                view.resource,
                Selection(namespace=namespace, label_selector=view.label_selector, field_selector=view.field_selector),
                form=view.form,
                streams=view.streams,
                timings=self._timings,
                on_unverified=self._mark_unverified,
                on_history_rewound=self._history_rewound,
                on_older_list=self._older_list,
                on_start_failure=self._start_failure if needed_at_start else _ignore,
                on_refused=self._watch_refused if view.is_optional else None,
                known=store.newest,
                managed_fields=view.managed_fields,
            )
            source = store.source(namespace)
            running.feeds.append(_Feed(source, watcher, _create_task(_feed(source, watcher))))
        return running

    def _namespaces_of(self, view: View[Any]) -> tuple[str, ...]:
        if view.namespace:
            return (view.namespace,)
        return self._namespaces if view.resource.namespaced and self._namespaces else ("",)

    async def _resync(self, store: Store[Any]) -> None:
        while True:
            await asyncio.sleep(self._resync_period * random.uniform(0.9, 1.1))  # noqa: S311 - spreads load
            store.resync()


def _name_of(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _ignore(_: Watcher, _error: KubeError) -> None:
    """Ignore the failure: a kind requested later may not exist in the cluster."""


def _create_task(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Create a task without a context: a watch outlives the pass that requested it first, and its log fields."""
    return asyncio.create_task(work, context=Context())


async def _verify(watcher: Watcher) -> None:
    try:
        await watcher.verify()
    except (ApiError, KindNotServed) as error:
        # One kind that can't be listed must not block writes of all others; but an API server that has just started
        # refuses for a moment, and its state is unknown then.
        if isinstance(error, ApiError) and error.status in _NOT_NOW:
            raise


def _is_own(resource: Resource) -> bool:
    """Whether the API server itself stores this kind, by its group."""
    return "." not in resource.group or resource.group.endswith(".k8s.io")


async def _feed(source: Source[Any], watcher: Watcher) -> None:
    while True:
        try:
            yielding = Yielding()
            async with contextlib.aclosing(watcher.events()) as events:
                async for event in events:
                    source.apply(event)
                    await yielding.after_long()
        except Exception as error:  # noqa: BLE001 - nothing may end a watch but its last user
            log.error("A watch failed unexpectedly, starting over", error=error)
            watcher.broke()
            await asyncio.sleep(_RESTART_SECONDS)


async def _stop(tasks: Iterable[asyncio.Task[None]]) -> None:
    stopping = list(tasks)
    for task in stopping:
        task.cancel()
    await asyncio.gather(*stopping, return_exceptions=True)
