"""Watched kinds, the owners that need them, and the parts of their objects that are kept.

Several controllers need different values about objects of the same kinds: one whether they are as applied, others their
health and progress. Each kind that some owner needs has one watch of the objects with a label, from its first owner to
its last. A controller has a `Part` of it: a function from an object to the values to keep. So an event is received and
decoded once, and little stays in memory.

A Job may be cleaned up after it has finished (`ttlSecondsAfterFinished`). The kept values of a Job that was observed as
finished before its deletion stay available (`Part.finished`), so that no controller misses it, or creates it again and
again. `presume_finished` adds Jobs that an owner remembers beyond the life of this process.
"""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from kube.objects import Key, Object, condition, key, spec
from kube.resources import BUILT_IN_GROUPS, Resource
from kube.runtime.cache import Caches, Change, Indexer, Store, View

T = TypeVar("T")

_LIST_SECONDS = 20.0
_OTHERS_LIST_SECONDS = 2.0
"""Timeout for kinds that may depend on another server: a conversion webhook, an aggregated API."""
_FINISHED_JOBS = 10_000
"""Maximum number of remembered Jobs."""

Kept = tuple[Any, ...]
"""Values kept of an object, in the order of the parts; the last is whether it is a finished Job to be cleaned up."""


class ManagedKinds:
    """Watches of one cluster; all parts are made before the first watch."""

    def __init__(self, caches: Caches, *, label_selector: str) -> None:
        self.caches = caches
        self._label_selector = label_selector
        self._parts: list[Part[Any]] = []
        self._stores: dict[Resource, Store[Kept]] = {}
        self._users: Counter[Resource] = Counter()
        self._list_until: dict[Resource, float] = {}
        """Deadline for the first list of a kind, shared by all waiting callers; monotonic."""
        self._finished: OrderedDict[tuple[Resource, Key], Kept] = OrderedDict()

    def part(
        self,
        keep: Callable[[Resource, Object], T],
        *,
        on_change: Callable[[Resource, Change[T]], None],
        index: Callable[[T], Iterable[Hashable]] = lambda _: (),
    ) -> "Part[T]":
        """Add a reader of the watches.

        Args:
            keep: returns the values to keep of an object; it must not change the object.
            on_change: called for each change of the kept values, also for objects of a list.
            index: the values under which `Part.by_index` finds an object.
        """
        if self._stores:
            raise RuntimeError("all parts must exist before the first watch")
        part = Part(self, number=len(self._parts), keep=keep, on_change=on_change, index=index)
        self._parts.append(part)
        return part

    def store(self, resource: Resource) -> Store[Kept] | None:
        return self._stores.get(resource)

    def finished(self, resource: Resource, key: Key) -> Kept | None:
        return self._finished.get((resource, key))

    def presume_finished(self, resource: Resource, obj: Object) -> None:
        """Take this as the last state of a Job that has finished and was cleaned up, until it is observed."""
        store, name = self._stores.get(resource), key(obj)
        if store is not None and store.get(name) is not None:
            return
        change = Change(key=name, old=self._kept(resource, obj), new=None, initial=False)
        self._remember(resource, change)
        for part in self._parts if store is not None else ():
            part.changed(resource, change)

    async def change_users(self, more: Iterable[Resource], fewer: Iterable[Resource]) -> None:
        """Count users: a kind is watched while it has one."""
        for resource in more:
            if resource not in self._stores:
                self._start(resource)
            self._users[resource] += 1
        unused = []
        for resource in fewer:
            self._users[resource] -= 1
            if not self._users[resource]:
                del self._users[resource]
                unused.append(self._stores.pop(resource))
                del self._list_until[resource]
        if unused:
            await self._release(unused)

    async def listed(self, resources: Iterable[Resource]) -> None:
        """Wait until these kinds are listed or their lists have failed, up to a timeout."""
        now = time.monotonic()
        waiting = [
            (self._stores[each].view, left)
            for each in resources
            if not self._stores[each].synced.is_set() and (left := self._list_until[each] - now) > 0
        ]
        if waiting:
            await asyncio.gather(*(self.caches.tried(view, timeout=left) for view, left in waiting))

    async def close(self) -> None:
        stores = list(self._stores.values())
        self._stores.clear()
        self._users.clear()
        self._list_until.clear()
        await self._release(stores)

    def _start(self, resource: Resource) -> None:
        parts = tuple(self._parts)
        indexes = tuple((str(part.number), part.indexer()) for part in parts)
        view = View(
            resource,
            partial(self._kept, resource),
            label_selector=self._label_selector,
            indexes=indexes,
            streams=True,
            most=64 << 10,
            managed_fields=True,
        )
        store = self.caches.acquire(view)
        self._stores[resource] = store
        seconds = _LIST_SECONDS if resource.group in BUILT_IN_GROUPS else _OTHERS_LIST_SECONDS
        self._list_until[resource] = time.monotonic() + seconds
        # Subscribe first, so that all other subscribers find it done.
        store.subscribe(partial(self._remember, resource))
        for part in parts:
            store.subscribe(partial(part.changed, resource))

    def _kept(self, resource: Resource, obj: Object) -> Kept:
        return (*(part.keep(resource, obj) for part in self._parts), is_cleaned_up(resource, obj))

    def _remember(self, resource: Resource, change: Change[Kept]) -> None:
        name = resource, change.key
        if change.new is not None:
            self._finished.pop(name, None)
        elif change.old is not None and change.old[-1]:
            self._finished[name] = change.old
            if len(self._finished) > _FINISHED_JOBS:
                self._finished.popitem(last=False)

    async def _release(self, stores: Sequence[Store[Kept]]) -> None:
        # Shielded: a pass that times out here must not leave watches behind.
        await asyncio.shield(asyncio.gather(*(self.caches.release(store.view) for store in stores)))


class Part(Generic[T]):
    """Values that one controller keeps of the objects; made by `ManagedKinds.part`."""

    def __init__(
        self,
        kinds: ManagedKinds,
        *,
        number: int,
        keep: Callable[[Resource, Object], T],
        on_change: Callable[[Resource, Change[T]], None],
        index: Callable[[T], Iterable[Hashable]],
    ) -> None:
        self.number = number
        self.keep = keep
        self._kinds = kinds
        self._on_change = on_change
        self._index = index
        self._used: dict[Hashable, frozenset[Resource]] = {}

    async def use(self, owner: Hashable, resources: Iterable[Resource]) -> None:
        """Watch exactly these kinds for an owner; returns when they are listed."""
        after, before = frozenset(resources), self._used.get(owner, frozenset())
        if after:
            self._used[owner] = after
        else:
            self._used.pop(owner, None)
        if after != before:
            await self._kinds.change_users(after - before, before - after)
        await self._kinds.listed(after)

    def get(self, resource: Resource, key: Key) -> T | None:
        store = self._kinds.store(resource)
        kept = store.get(key) if store is not None else None
        return None if kept is None else self._own(kept)

    def finished(self, resource: Resource, key: Key) -> T | None:
        """Values kept of a Job that has finished and was cleaned up."""
        kept = self._kinds.finished(resource, key)
        return None if kept is None else self._own(kept)

    def by_index(self, resource: Resource, value: Hashable) -> list[tuple[Key, T]]:
        store = self._kinds.store(resource)
        if store is None:
            return []
        return [(key, self._own(kept)) for key, kept in store.by_index(str(self.number), value)]

    def is_listed(self, resource: Resource) -> bool:
        """Whether the kind has been listed completely."""
        store = self._kinds.store(resource)
        return store is not None and store.synced.is_set()

    def sees(self, resource: Resource, key: Key) -> bool:
        """Whether an object with the label would be in the cache; if not, it has to be read."""
        return self.is_listed(resource) and self._kinds.caches.covers(resource, key.namespace)

    def observe(self, resource: Resource, obj: Object) -> None:
        """Take over the response to an own write of an object with the label."""
        store = self._kinds.store(resource)
        if store is not None:
            store.observe(obj)

    def indexer(self) -> Indexer:
        return lambda kept: self._index(self._own(kept))

    def changed(self, resource: Resource, change: Change[Kept]) -> None:
        old, new = (None if kept is None else self._own(kept) for kept in (change.old, change.new))
        self._on_change(resource, Change(key=change.key, old=old, new=new, initial=change.initial))

    def _own(self, kept: Kept) -> T:
        found: T = kept[self.number]
        return found


def is_cleaned_up(resource: Resource, obj: Object) -> bool:
    """Whether this is a finished Job that will be deleted because of its TTL."""
    if (resource.group, resource.kind) != ("batch", "Job"):
        return False
    has_ttl = spec(obj).get("ttlSecondsAfterFinished") is not None
    return has_ttl and any((condition(obj, kind) or {}).get("status") == "True" for kind in ("Complete", "Failed"))
