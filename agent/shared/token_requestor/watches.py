"""Watches of target Secrets and ServiceAccounts, so that a change of one is detected at once.

Only metadata is watched, and no more objects than needed: each by its name as long as there are few of them, and all by
one watch when there are many, since a watch costs a connection. Without the right to watch, all works without these
watches: the regular check finds that a token is not accepted any more.
"""

import asyncio
from dataclasses import dataclass, field

from kube.objects import Key, resource_version, uid
from kube.resources import SECRETS, SERVICE_ACCOUNTS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, Queue

MOST_BY_NAME = 8


def _by_name(name: Key, count: int) -> str:
    return f"metadata.name={name.name},metadata.namespace={name.namespace}" if count <= MOST_BY_NAME else ""


# --- target Secrets


def view_of_target(target: Key, *, count: int) -> View[int]:
    """View for one of `count` target Secrets; the names must be valid."""
    return View(SECRETS, resource_version, form=Form.METADATA, field_selector=_by_name(target, count))


@dataclass(frozen=True, slots=True)
class _Watch:
    store: Store[int]
    first_list: "asyncio.Task[None]"


class TargetSecrets:
    """Detect changes of target Secrets by comparing the version of the last pass with that of the watch.

    Args:
        caches: caches of the target cluster.
    """

    def __init__(self, loop: ControlLoop, caches: Caches) -> None:
        self._loop = loop
        self._caches = caches
        self._target_of: dict[Key, Key] = {}
        self._sources_of: dict[Key, set[Key]] = {}
        self._versions: dict[Key, int] = {}
        """Version of a target Secret after the last pass, 0 if it did not exist; missing if no pass has read it yet."""
        self._watches: dict[View[int], _Watch] = {}

    def follow(self, source: Key, target: Key | None) -> None:
        """Set the target Secret of the source Secret."""
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
        """Note the version that a pass has read or written; 0 if the target Secret does not exist."""
        if target in self._sources_of:
            self._versions[target] = version

    async def close(self) -> None:
        self._watch(set())

    def _view(self, target: Key) -> View[int]:
        return view_of_target(target, count=len(self._sources_of))

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
        """Detect deletions before the first list, which lead to no event."""
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


# --- ServiceAccounts


def view_of_account(account: Key, *, count: int, namespace: str = "") -> View[str]:
    """View for one of `count` ServiceAccounts; the names must be valid.

    `namespace` is that of all of them, so that no right to others is needed; empty if they are in several.
    """
    selector = _by_name(account, count)
    return View(SERVICE_ACCOUNTS, uid, form=Form.METADATA, field_selector=selector, namespace=namespace)


@dataclass(slots=True)
class Accounts:
    """Detect deleted ServiceAccounts: their tokens end, and new ones are due at once. Only uids are cached.

    Args:
        caches: caches of the target cluster.
        namespace: namespace of all ServiceAccounts; empty if they are in several.
    """

    loop: ControlLoop
    caches: Caches
    namespace: str = ""
    _account_of: dict[Key, Key] = field(default_factory=dict)
    _sources_of: dict[Key, set[Key]] = field(default_factory=dict)
    _stores: dict[View[str], Store[str]] = field(default_factory=dict)
    _ended: set[Key] = field(default_factory=set)
    """Secrets whose tokens ended with a ServiceAccount."""

    def follow(self, source: Key, account: Key | None) -> None:
        """Set the ServiceAccount of a Secret's token."""
        if account is not None and not self.caches.covers(SERVICE_ACCOUNTS, account.namespace):
            account = None
        former = self._account_of.get(source)
        if former == account:
            return
        self._ended.discard(source)
        if former is not None:
            del self._account_of[source]
            self._sources_of[former].discard(source)
            if not self._sources_of[former]:
                del self._sources_of[former]
        if account is not None:
            self._account_of[source] = account
            self._sources_of.setdefault(account, set()).add(source)
        count = len(self._sources_of)
        self._watch({view_of_account(each, count=count, namespace=self.namespace) for each in self._sources_of})

    def has_ended(self, source: Key) -> bool:
        """Whether the ServiceAccount of the token is gone."""
        return source in self._ended

    def begins(self, source: Key) -> None:
        """Note that a new token was requested."""
        self._ended.discard(source)

    async def close(self) -> None:
        self._watch(set())

    def _watch(self, wanted: set[View[str]]) -> None:
        for view in wanted - self._stores.keys():
            self._stores[view] = self.loop.watch(self.caches, view, self._changed)
        for view in self._stores.keys() - wanted:
            self.loop.unwatch(self._stores.pop(view))

    def _changed(self, queue: Queue, change: Change[str]) -> None:
        if change.old is not None and change.old != change.new:
            for source in self._sources_of.get(change.key, ()):
                self._ended.add(source)
                queue.add(source)
