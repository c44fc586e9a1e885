"""Which ManagedResources this process has written last, and whether their status belongs to that.

The seed flow notes what it writes; the care controller counts a ManagedResource only if the resource manager has
answered since: what it knows of it may be from before.

    writes.note(managed_resource)        # it has just been written
    writes.is_answered(managed_resource) # as the cache has it now

Secrets of components have a hash of their contents in their names, so that other contents are another spec: the
generation says all. It is kept in memory: what another process wrote counts as it is.
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
        """It has just been written. Args: managed_resource: as the API server has it since."""
        generation = integer(metadata(managed_resource).get("generation"))
        self._last[key(managed_resource)] = _Write(uid(managed_resource), generation)

    def is_answered(self, managed_resource: Object) -> bool:
        """Whether its status belongs to what this process has written last, or to something later."""
        write = self._last.get(key(managed_resource))
        if write is None or write.uid != uid(managed_resource):
            return True
        return integer(at(managed_resource, "status", "observedGeneration")) >= write.generation

    def forget(self, name: Key, uid: str) -> None:
        """The one with this uid is gone."""
        write = self._last.get(name)
        if write is not None and write.uid == uid:
            del self._last[name]
