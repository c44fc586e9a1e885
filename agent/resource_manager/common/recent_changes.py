"""Recent changes of objects by this process, for readers of the status page.

A ring of bounded entries: the oldest is dropped first, and nothing outlives the process. Only the paths of changed
fields are kept, never their values, so no content of a Secret or a manifest gets in here. Without a status page the
ring has no capacity, and noting costs nothing.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gardener.managed_resource.changes import FieldChange
from kube.objects import Key

KEPT = 1000
_FIELDS = 8
"""Number of field paths kept of one change; the others are only counted."""


class Action(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    """The manifest was changed."""
    REPAIRED = "repaired"
    """Another client had changed it."""
    MADE_AGAIN = "made again"
    """Another client had deleted it."""
    TAKEN_OVER = "taken over"
    """It existed before, without an owner."""
    DELETED = "deleted"

    @property
    def is_repair(self) -> bool:
        return self in {Action.REPAIRED, Action.MADE_AGAIN}

    @property
    def is_news(self) -> bool:
        """Whether the manifests alone do not explain it."""
        return self.is_repair or self is Action.TAKEN_OVER


@dataclass(frozen=True, slots=True)
class ObjectChange:
    at: float
    """Unix time in seconds."""
    owner: Key
    """The ManagedResource that caused the change."""
    action: Action
    kind: str
    key: Key
    fields: tuple[str, ...] = ()
    """Paths of the changed fields, at most the first `_FIELDS`."""
    more_fields: int = 0


def object_change(
    owner: Key,
    action: Action,
    reference: Mapping[str, Any],
    *,
    at: float,
    fields: Sequence[FieldChange] = (),
) -> ObjectChange:
    """Return the record of a change.

    Args: reference: apiVersion, kind, namespace, name; fields: changed fields.
    """
    return ObjectChange(
        at=at,
        owner=owner,
        action=action,
        kind=reference.get("kind") or "",
        key=Key(reference.get("namespace") or "", reference.get("name") or ""),
        fields=tuple(field.path for field in fields[:_FIELDS]),
        more_fields=max(len(fields) - _FIELDS, 0),
    )


class RecentChanges:
    """Args: limit: number of changes to keep."""

    def __init__(self, *, limit: int) -> None:
        self._ring: deque[ObjectChange] = deque(maxlen=limit)
        self.limit = limit

    def add(self, changes: Iterable[ObjectChange]) -> None:
        """Args: changes: oldest first."""
        self._ring.extend(changes)

    def newest_first(self, *, owner: Key | None = None) -> Iterator[ObjectChange]:
        """All changes, or those of one ManagedResource."""
        return (change for change in reversed(self._ring) if owner in {None, change.owner})
