"""Watches of the target Secrets, so that one that somebody deletes or changes is looked at again at once.

Only metadata is watched, and no more Secrets than needed: each by its name as long as there are few of them, and all by
one watch when there are many, since a watch costs a connection. What is compared is the version: the one that the last
pass read or wrote, and the one that the watch brings. Without the right to watch, all goes on without these watches.
"""

import asyncio
from dataclasses import dataclass

from kube.objects import Key, resource_version
from kube.resources import SECRETS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, Queue

MOST_BY_NAME = 8


def view_of(target: Key, *, count: int) -> View[int]:
    """What is watched to see one of so many target Secrets; the names must be valid."""
    by_name = f"metadata.name={target.name},metadata.namespace={target.namespace}"
    return View(SECRETS, resource_version, form=Form.METADATA, field_selector=by_name if count <= MOST_BY_NAME else "")


@dataclass(frozen=True, slots=True)
class _Watch:
    store: Store[int]
    first_list: "asyncio.Task[None]"


class TargetSecrets:
    """Args: caches: of the target cluster."""

    def __init__(self, loop: ControlLoop, caches: Caches) -> None:
        self._loop = loop
        self._caches = caches
        self._target_of: dict[Key, Key] = {}
        self._sources_of: dict[Key, set[Key]] = {}
        self._versions: dict[Key, int] = {}
        """As the last pass left a target Secret, 0 if it did not exist; nothing for one that no pass has read yet."""
        self._watches: dict[View[int], _Watch] = {}

    def follow(self, source: Key, target: Key | None) -> None:
        """From now on this is the target Secret of the source Secret."""
        if target is not None and not self._caches.covers(SECRETS, target.namespace):
            target = None
        former = self._target_of.get(source)
        if former == target:
            return
        if former is not None:
            self._drop(source, former)
        if target is not None:
            self._target_of[source] = target
            self._sources_of.setdefault(target, set()).add(source)
        self._watch({self._view(followed) for followed in self._sources_of})

    def left(self, target: Key, version: int) -> None:
        """A pass has read or written a target Secret; 0: it does not exist."""
        if target in self._sources_of:
            self._versions[target] = version

    async def close(self) -> None:
        self._watch(set())

    def _view(self, target: Key) -> View[int]:
        return view_of(target, count=len(self._sources_of))

    def _drop(self, source: Key, target: Key) -> None:
        del self._target_of[source]
        self._sources_of[target].discard(source)
        if not self._sources_of[target]:
            del self._sources_of[target]
            self._versions.pop(target, None)

    def _watch(self, wanted: set[View[int]]) -> None:
        for view in wanted - self._watches.keys():
            store = self._loop.watch(self._caches, view, self._changed)
            self._watches[view] = _Watch(store, asyncio.create_task(self._compare_first_list(store)))
        for view in self._watches.keys() - wanted:
            watch = self._watches.pop(view)
            watch.first_list.cancel()
            self._loop.unwatch(watch.store)

    async def _compare_first_list(self, store: Store[int]) -> None:
        """What went before it could be listed leads to no event."""
        await store.synced.wait()
        for target in list(self._sources_of):
            if self._view(target) == store.view:
                self._compare(target, store.version(target))

    def _changed(self, _: Queue, change: Change[int]) -> None:
        self._compare(change.key, change.new or 0)

    def _compare(self, target: Key, version: int) -> None:
        if self._versions.get(target, version) != version:
            for source in self._sources_of[target]:
                self._loop.queue.add(source)
