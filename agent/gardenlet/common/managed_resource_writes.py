"""The last writes of ManagedResources by this process, and whether their status is newer.

The seed flow records its writes; the care controller trusts the status of a ManagedResource only if the resource
manager has reconciled it since, because the cached object may be older.

    writes.note(managed_resource)        # just written
    writes.is_answered(managed_resource) # from the cache

Secrets of components have a content hash in their names, so that a change of content changes the spec: the generation
is enough. Writes are kept in memory: those of other processes are trusted as they are.
"""

from dataclasses import dataclass

from kube.objects import Key, Object, integer, key, metadata, uid
from kube.paths import at


@dataclass(frozen=True, slots=True)
class _Write:
    uid: str
    generation: int


class ManagedResourceWrites:
    def __init__(self) -> None:
        self._last: dict[Key, _Write] = {}

    def note(self, managed_resource: Object) -> None:
        """Record a write; `managed_resource` is the response of the API server."""
        generation = integer(metadata(managed_resource).get("generation"))
        self._last[key(managed_resource)] = _Write(uid(managed_resource), generation)

    def is_answered(self, managed_resource: Object) -> bool:
        """Whether the status belongs to the last write of this process, or to a later one."""
        write = self._last.get(key(managed_resource))
        if write is None or write.uid != uid(managed_resource):
            return True
        return integer(at(managed_resource, "status", "observedGeneration")) >= write.generation

    def forget(self, name: Key, uid: str) -> None:
        """Forget a deleted ManagedResource with this uid."""
        write = self._last.get(name)
        if write is not None and write.uid == uid:
            del self._last[name]
