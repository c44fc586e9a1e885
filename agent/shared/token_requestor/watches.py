"""Watches of target Secrets and ServiceAccounts, so that a change of one is noticed at once.

Only metadata is watched, and no more objects than needed: each by its name as long as there are few of them, and all by
one watch when there are many, since a watch costs a connection. Without the right to watch, all goes on without these
watches: the regular review finds that a token is not accepted any more.
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
    """What is watched to see one of so many target Secrets; the names must be valid."""
    return View(SECRETS, resource_version, form=Form.METADATA, field_selector=_by_name(target, count))


@dataclass(frozen=True, slots=True)
class _Watch:
    store: Store[int]
    first_list: "asyncio.Task[None]"


class TargetSecrets:
    """What is compared is the version: the one that the last pass read or wrote, and the one that the watch brings.

    Args: caches: of the target cluster.
    """

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


# --- ServiceAccounts


def view_of_account(account: Key, *, count: int, namespace: str = "") -> View[str]:
    """What is watched to see one of so many ServiceAccounts; the names must be valid.

    Args: namespace: of all of them, so that no right to others is needed; empty: they are in several.
    """
    selector = _by_name(account, count)
    return View(SERVICE_ACCOUNTS, uid, form=Form.METADATA, field_selector=selector, namespace=namespace)


@dataclass(slots=True)
class Accounts:
    """With a ServiceAccount that is deleted, its tokens end, and new ones are due at once. Only uids are kept.

    Args:
        caches: of the target cluster.
        namespace: of all ServiceAccounts; empty: they are in several.
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
        """From now on this is the ServiceAccount of a Secret's token."""
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
        """Whether the ServiceAccount of its token is gone."""
        return source in self._ended

    def begins(self, source: Key) -> None:
        """A token was requested."""
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
