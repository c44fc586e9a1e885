"""The managed objects in the target cluster, seen through watches.

For each kind that some ManagedResource manages there is one watch of the objects that carry our managed-by label. Of
each object only little is kept (`Observed`): above all a hash of its content. What was last applied, or found to be
right, is remembered as such a hash too (`accept`); so 'is everything as it should be' is answered from memory, a
status update of a Deployment is nobody's business, and a manual change shows at once: its event has another hash.

The whole object of such an event waits in a bounded memory until the pass that puts it right, which then needs no
read. An object that is not in the store may still exist (somebody took its label away), so it is read, or its creation
fails with 'already exists'.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agent.managed_resource import keys
from agent.managed_resource.difference import content_hash
from kube.bodies import Bodies
from kube.cache import Caches, Change, Store, View
from kube.client import Client
from kube.discovery import Discovery
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, is_deleting, labels, resource_version, uid
from kube.objects import key as key_of
from kube.resources import Resource

_SYNC_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ObjectId:
    """An object in the target, whatever the version of its kind."""

    group: str
    kind: str
    key: Key


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known of a live object."""

    uid: str
    version: int
    content: bytes
    """See `difference.content_hash`."""
    origin: str
    deleting: bool
    has_marks: bool
    """Whether annotations or labels have a say in its removal, so that it has to be read before."""


class Target:
    """Args: memory: bytes for objects that wait for their pass; on_change: called with the origin of an object
    that is not as it was accepted.
    """

    def __init__(
        self,
        *,
        client: Client,
        discovery: Discovery,
        caches: Caches,
        managed_by: str,
        memory: int,
        on_change: Callable[[str], None],
    ) -> None:
        self.client = client
        self.discovery = discovery
        self._caches = caches
        self._managed_by = managed_by
        self._on_change = on_change
        self._bodies = Bodies(limit=memory)
        self._accepted: dict[ObjectId, bytes] = {}
        self._stores: dict[Resource, Store[Observed]] = {}
        self._users: dict[Resource, set[Key]] = {}

    # --- which kinds are watched

    async def manage(self, user: Key, resources: Iterable[Resource]) -> None:
        """Watch these kinds for a ManagedResource and no others for it; returns when they were listed."""
        wanted = set(resources)
        for resource in wanted:
            self._users.setdefault(resource, set()).add(user)
            if resource not in self._stores:
                store = self._caches.acquire(self._view(resource))
                store.subscribe(lambda change, resource=resource: self._changed(resource, change))
                self._stores[resource] = store
        for resource in [r for r, users in self._users.items() if user in users and r not in wanted]:
            self._users[resource].discard(user)
            if not self._users[resource]:
                del self._users[resource]
                await self._caches.release(self._stores.pop(resource).view)
        await asyncio.gather(*(self._caches.tried(self._stores[r].view, timeout=_SYNC_SECONDS) for r in wanted))

    def _view(self, resource: Resource) -> View[Observed]:
        def project(obj: Object) -> Observed:
            return self._observe(resource, obj)

        return View(resource, project, label_selector=f"{keys.MANAGED_BY}={self._managed_by}")

    # --- what is known

    def observed(self, resource: Resource, key: Key) -> Observed | None:
        store = self._stores.get(resource)
        return store.get(key) if store is not None else None

    def is_accepted(self, resource: Resource, key: Key) -> bool:
        """Whether the live object is as it was after the last pass that looked at it."""
        observed = self.observed(resource, key)
        return observed is not None and self._accepted.get(_id(resource, key)) == observed.content

    def sees(self, resource: Resource, key: Key) -> bool:
        """Whether an object that carries our label would be known; if not, it has to be read."""
        store = self._stores.get(resource)
        return store is not None and store.synced.is_set() and self._caches.covers(resource, key.namespace)

    async def read(self, resource: Resource, key: Key) -> Object | None:
        """The whole live object, from the memory of recent events if it is there. Raises KubeError."""
        observed = self.observed(resource, key)
        if observed is not None:
            body = self._bodies.get(_id(resource, key), version=observed.version)
            if body is not None:
                return body
        return await self.read_live(resource, key)

    async def read_live(self, resource: Resource, key: Key) -> Object | None:
        """The whole live object from the API server. Raises KubeError."""
        try:
            return await self.client.get(resource, key.name, namespace=key.namespace)
        except NotFound:
            return None

    # --- what is remembered

    def accept(self, resource: Resource, live: Object) -> None:
        """From now on, only another content than this is a change."""
        name = _id(resource, key_of(live))
        self._accepted[name] = content_hash(live)
        self._bodies.drop(name)
        store = self._stores.get(resource)
        if store is not None and labels(live).get(keys.MANAGED_BY) == self._managed_by:
            store.observe(live)

    def forget(self, name: ObjectId) -> None:
        self._accepted.pop(name, None)
        self._bodies.drop(name)

    def _observe(self, resource: Resource, obj: Object) -> Observed:
        name, content = _id(resource, key_of(obj)), content_hash(obj)
        notes, marks = annotations(obj), labels(obj)
        if self._accepted.get(name) != content:
            self._bodies.put(name, obj)
        return Observed(
            uid=uid(obj),
            version=resource_version(obj),
            content=content,
            origin=notes.get(keys.ORIGIN, ""),
            deleting=is_deleting(obj),
            has_marks=any(mark in notes for mark in keys.REMOVAL_ANNOTATIONS) or keys.GARBAGE_COLLECTABLE in marks,
        )

    def _changed(self, resource: Resource, change: Change[Observed]) -> None:
        old, new = change.old, change.new
        name = _id(resource, change.key)
        if new is None:
            self.forget(name)
        elif self._accepted.get(name) == new.content and (old is None or old.deleting == new.deleting):
            return
        for origin in {seen.origin for seen in (old, new) if seen is not None and seen.origin}:
            self._on_change(origin)


def _id(resource: Resource, key: Key) -> ObjectId:
    return ObjectId(resource.group, resource.kind, key)
