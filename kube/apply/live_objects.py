"""Live objects of owners, observed through watches.

Each kind that some owner has is watched by label (`kinds`). Little is kept of each object (`Observed`): above all a
hash of its content. The last applied or accepted state is remembered as such a hash, too (`accept`). So whether
everything is as desired is answered from memory, a status update of a Deployment triggers nothing, and a manual change
is noticed at once: its event has another hash.

Whole objects are held compressed, in bounded memory, so that the pass that changes one needs no read. An object that is
not in the store may still exist (its label may have been removed), so it is read, or its creation fails with 'already
exists'.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kube.apply.kinds import ManagedKinds
from kube.differences import content_hash
from kube.errors import KubeError
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    held_by,
    is_deleting,
    labels,
    metadata,
    object_key,
    resource_version,
    uid,
)
from kube.objects import key as key_of
from kube.packing import RecentObjects
from kube.resources import Resource
from kube.runtime.cache import Change
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.limiter import ByteBudget

_LARGE_AT_ONCE = 24 << 20
_RECENT = 64 << 20
"""Bytes of memory for live objects, compressed: a hundred thousand of usual size. Each beyond costs a read."""


@dataclass(slots=True)
class Observed:
    """Observed state of a live object. Treat as immutable; not frozen because construction is on the hot path."""

    uid: str
    version: int
    content: bytes
    """See `differences.content_hash`."""
    origin: str
    """Owner according to the annotation; empty if there is none."""
    deletion_timestamp: str
    """Empty if it is not being deleted."""
    held_by: str
    """Description of what its deletion waits for; empty if it is not being deleted."""
    has_marks: bool
    """Whether annotations or labels influence its removal, so that it has to be read before."""
    finalizers: tuple[str, ...] = ()

    @property
    def deleting(self) -> bool:
        return bool(self.deletion_timestamp)


class LiveObjects:
    """Objects in one cluster that carry a label.

    Args:
        kinds: the watches.
        origin: the annotation with the owner of an object.
        marks: annotations and labels that influence the removal of an object.
        on_change: called with the owner of an object that is not as accepted.
        finds_by_owner: whether `owned` is used.
    """

    def __init__(
        self,
        *,
        client: Client,
        discovery: Discovery,
        kinds: ManagedKinds,
        origin: str,
        on_change: Callable[[str], None],
        marks: Collection[str] = (),
        finds_by_owner: bool = False,
    ) -> None:
        self.client = client
        self.discovery = discovery
        self._origin = origin
        self._marks = frozenset(marks)
        index = (lambda observed: (observed.origin,)) if finds_by_owner else (lambda _: ())
        self._watches = kinds
        self._kinds = kinds.part(self._observe, on_change=self._changed, index=index)
        self._on_change = on_change
        self._recent = RecentObjects(limit=_RECENT)
        self._accepted: dict[str, bytes] = {}
        self._answer: tuple[Object, bytes] | None = None
        """Response that is just being taken over, with its hash."""
        self._being_written: dict[str, set[str]] = {}
        """Objects being written, and the owners to notify if the object is not as accepted afterwards."""
        self._turns = asyncio.Lock()
        self.memory = ByteBudget(_LARGE_AT_ONCE)
        """Budget for large objects that are being written."""

    def client_of(self, user: str) -> Client:
        """Client that impersonates a user; the client itself if there is none."""
        return self.client.impersonating(user) if user else self.client

    async def manage(self, user: Hashable, resources: Iterable[Resource]) -> None:
        """Watch exactly these kinds for an owner; returns when they are listed."""
        await self._kinds.use(user, resources)

    # --- observed state

    async def resource_of(self, reference: Object) -> Resource:
        """Resource under which the object of a reference is reached; its own version may not be served any more.

        Raises:
            KindGone: the object can't exist.
            KubeError: the resource can't be determined.
        """
        return await self.discovery.find_any_version(reference.get("apiVersion") or "", reference.get("kind") or "")

    async def resources_of(self, references: Iterable[Object]) -> set[Resource]:
        """Resources of many references, without unknown ones: the removal of their objects finds those, too."""
        found = set()
        for one in {(each.get("apiVersion"), each.get("kind")): each for each in references}.values():
            with contextlib.suppress(KubeError):
                found.add(await self.resource_of(one))
        return found

    def observed(self, resource: Resource, key: Key) -> Observed | None:
        return self._kinds.get(resource, key)

    def observed_as(self, reference: Object) -> Observed | None:
        """Observed state of the object of a reference; None also if its kind is unknown."""
        resource = self.discovery.known(reference.get("apiVersion") or "", reference.get("kind") or "")
        return None if resource is None else self.observed(resource, key_of_live(resource, reference))

    def owned(self, resource: Resource, origin: str) -> list[tuple[Key, Observed]]:
        """Objects of an owner, of a watched kind."""
        return self._kinds.by_index(resource, origin)

    def is_listed(self, resource: Resource) -> bool:
        """Whether the kind has been listed completely."""
        return self._kinds.is_listed(resource)

    def is_accepted(self, resource: Resource, key: Key) -> bool:
        """Whether the live object is unchanged since the last pass that accepted it."""
        observed = self.observed(resource, key)
        return observed is not None and self._accepted.get(id_of(resource, key)) == observed.content

    def has_finished(self, resource: Resource, key: Key) -> bool:
        """Whether this is a Job that has finished and was cleaned up since."""
        return self._kinds.finished(resource, key) is not None

    def presume_finished(self, resource: Resource, job: Object) -> None:
        """Take this as the last state of a finished Job, unless it exists."""
        self._watches.presume_finished(resource, job)

    def has_finished_as(self, reference: Object) -> bool:
        """Whether a reference is to a Job that has finished and was cleaned up since."""
        resource = self.discovery.known(reference.get("apiVersion") or "", reference.get("kind") or "")
        return resource is not None and self.has_finished(resource, key_of_live(resource, reference))

    def sees(self, resource: Resource, key: Key) -> bool:
        """Whether an object with the label would be in the cache; if not, it has to be read."""
        return self._kinds.sees(resource, key)

    async def read(self, resource: Resource, key: Key) -> Object | None:
        """Whole live object, from the memory of recent events if it is there."""
        observed = self.observed(resource, key)
        if observed is not None:
            found = self._recent.get(id_of(resource, key), version=observed.version)
            if found is not None:
                return found
        return await self.read_live(resource, key)

    async def read_live(self, resource: Resource, key: Key, *, client: Client | None = None) -> Object | None:
        """Whole live object, from the API server."""
        return await (client or self.client).find(resource, key)

    async def annotate(
        self, resource: Resource, live: Object, notes: Mapping[str, str | None], *, client: Client
    ) -> None:
        """Set annotations, or remove those that are None, if the object is unchanged since it was read. Raises
        KubeError.
        """
        key = key_of(live)
        meta = {"annotations": notes, "resourceVersion": metadata(live)["resourceVersion"]}
        await client.patch(resource, key, {"metadata": meta})

    async def turn(self) -> None:
        """Wait for the caller's turn to do something that blocks the event loop for milliseconds.

        Between two turns all other tasks on the loop can run.
        """
        async with self._turns:
            await asyncio.sleep(0)

    # --- remembered state

    def accept(self, resource: Resource, live: Object, content: bytes) -> None:
        """Accept this content: from now on, only another one is a change; see `differences.content_hash`."""
        self._accepted[id_of(resource, key_of(live))] = content
        if annotations(live).get(self._origin):
            self._answer = live, content
            self._kinds.observe(resource, live)
            self._answer = None

    def content_of(self, resource: Resource, live: Object) -> bytes | None:
        """Hash of a live object, if the watch has observed exactly this version; else None."""
        observed = self.observed(resource, key_of(live))
        is_same = observed is not None and (observed.uid, observed.version) == (uid(live), resource_version(live))
        return observed.content if observed is not None and is_same else None

    @contextlib.contextmanager
    def writing(self, resource: Resource, key: Key) -> Iterator[None]:
        """Enclose an own write and its acceptance: its event is no change, even if it arrives before the response."""
        name = id_of(resource, key)
        changed = self._being_written.setdefault(name, set())
        try:
            yield
        finally:
            self._being_written.pop(name, None)
            if changed and not self.is_accepted(resource, key):
                for origin in changed:
                    self._on_change(origin)

    def forget(self, name: str) -> None:
        self._accepted.pop(name, None)
        self._recent.drop(name)

    def _observe(self, resource: Resource, obj: Object) -> Observed:
        name = id_of(resource, key_of(obj))
        content = self._answer[1] if self._answer is not None and self._answer[0] is obj else content_hash(obj)
        notes = annotations(obj)
        self._recent.put(name, obj)
        return Observed(
            uid=uid(obj),
            version=resource_version(obj),
            content=content,
            origin=sys.intern(notes.get(self._origin, "")),  # one string for all of an owner
            deletion_timestamp=metadata(obj).get("deletionTimestamp") or "",
            held_by=held_by(obj) if is_deleting(obj) else "",
            has_marks=not (self._marks.isdisjoint(notes) and self._marks.isdisjoint(labels(obj))),
            finalizers=tuple(map(sys.intern, finalizers(obj))),
        )

    def _changed(self, resource: Resource, change: Change[Observed]) -> None:
        old, new = change.old, change.new
        name = id_of(resource, change.key)
        origins = {seen.origin for seen in (old, new) if seen is not None and seen.origin}
        if new is None:
            self.forget(name)
        elif old is None or old.deleting == new.deleting:
            if self._accepted.get(name) == new.content:
                return
            if name in self._being_written and not new.deleting:
                self._being_written[name] |= origins
                return
        for origin in origins:
            self._on_change(origin)


def key_of_live(resource: Resource, reference: Object) -> Key:
    """Key of the object of a reference."""
    return Key(reference.get("namespace") or "" if resource.namespaced else "", reference.get("name") or "")


def id_of(resource: Resource, key: Key) -> str:
    """Identifier of an object, independent of the version of its kind."""
    return object_key(resource.group, resource.kind, key.namespace, key.name)
