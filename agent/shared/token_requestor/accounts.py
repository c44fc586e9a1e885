"""Watches of the ServiceAccounts: with one that somebody deletes, its tokens end, and new ones are due at once.

Only uids are kept. As with target Secrets, few are watched by their names, and many by one watch; without the right to
watch, the regular review finds that a token is not accepted any more.
"""

from dataclasses import dataclass, field

from agent.shared.token_requestor.targets import MOST_BY_NAME
from kube.objects import Key, uid
from kube.resources import SERVICE_ACCOUNTS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Form
from kube.runtime.loop import ControlLoop, Queue


def view_of(account: Key, *, count: int) -> View[str]:
    """What is watched to see one of so many ServiceAccounts; the names must be valid."""
    by_name = f"metadata.name={account.name},metadata.namespace={account.namespace}"
    selector = by_name if count <= MOST_BY_NAME else ""
    return View(SERVICE_ACCOUNTS, uid, form=Form.METADATA, field_selector=selector)


@dataclass(slots=True)
class Accounts:
    """Args: caches: of the target cluster."""

    loop: ControlLoop
    caches: Caches
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
        self._watch({view_of(each, count=len(self._sources_of)) for each in self._sources_of})

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
