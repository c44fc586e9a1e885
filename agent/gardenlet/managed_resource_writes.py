"""Which ManagedResources this process has written last, and whether their status belongs to that.

The seed flow notes what it writes; the care controller counts a ManagedResource only if the resource manager has
answered since, and what stands in its status from before says nothing about what was just written.

    writes.note(managed_resource)        # it, or one of its Secrets, has just been written
    writes.is_answered(managed_resource) # as the cache has it now

It is all kept in memory: what another process wrote counts as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from gardener.conditions import RESOURCES_APPLIED
from kube.clock import time_or_none
from kube.objects import Key, Object, condition, integer, key, metadata, text, uid
from kube.paths import at


@dataclass(frozen=True, slots=True)
class _Write:
    """How a ManagedResource was when it, or one of its Secrets, had just been written."""

    uid: str
    moment: datetime
    """To the second, as times in conditions are."""
    generation: int
    observed: int
    checksum: str
    """`status.secretsDataChecksum`, of the contents that were applied before."""


class ManagedResourceWrites:
    """Args: clock: the time of the cluster, since times in conditions are compared with it."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._last: dict[Key, _Write] = {}

    def note(self, managed_resource: Object) -> None:
        """It, or one of its Secrets, has just been written. Args: managed_resource: as the API server answered."""
        self._last[key(managed_resource)] = _Write(
            uid=uid(managed_resource),
            moment=self._clock().replace(microsecond=0),
            generation=_generation(managed_resource),
            observed=_observed(managed_resource),
            checksum=_checksum(managed_resource),
        )

    def is_answered(self, managed_resource: Object) -> bool:
        """Whether its status belongs to what this process has written last.

        A write that changed the spec is answered by its generation. One of a Secret alone is answered by another
        checksum, or by a condition from after it.
        """
        write = self._last.get(key(managed_resource))
        if write is None or write.uid != uid(managed_resource):
            return True
        if _observed(managed_resource) < write.generation:
            return False
        applied = condition(managed_resource, RESOURCES_APPLIED) or {}
        times = [time_or_none(applied.get(name)) for name in ("lastTransitionTime", "lastUpdateTime")]
        return (
            write.observed < write.generation
            or _checksum(managed_resource) != write.checksum
            or any(time is not None and time >= write.moment for time in times)
        )

    def forget(self, name: Key, uid: str) -> None:
        """The one with this uid is gone."""
        write = self._last.get(name)
        if write is not None and write.uid == uid:
            del self._last[name]


def _generation(managed_resource: Object) -> int:
    return integer(metadata(managed_resource).get("generation"))


def _observed(managed_resource: Object) -> int:
    return integer(at(managed_resource, "status", "observedGeneration"))


def _checksum(managed_resource: Object) -> str:
    return text(at(managed_resource, "status", "secretsDataChecksum"))
