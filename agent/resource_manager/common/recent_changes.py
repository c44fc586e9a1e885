"""What this process has done to objects lately, for people who look at the status page.

A ring of bounded entries: the oldest goes first, and nothing outlives the process. Of a change the paths of the fields
are kept and never their values, so nothing of a Secret or of a manifest gets in here. Where there is no status page,
there is no room in it, and noting costs nothing.
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
"""Shown of one change; of the others only the number is kept, and that only up to a bound."""


class Action(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    """Since its manifest was changed."""
    REPAIRED = "repaired"
    """Another client had changed it."""
    MADE_AGAIN = "made again"
    """Another client had deleted it."""
    TAKEN_OVER = "taken over"
    """It was there before, without an owner."""
    DELETED = "deleted"

    @property
    def is_repair(self) -> bool:
        return self in {Action.REPAIRED, Action.MADE_AGAIN}

    @property
    def is_news(self) -> bool:
        """Whether it was not to be expected by the manifests alone."""
        return self.is_repair or self is Action.TAKEN_OVER


@dataclass(frozen=True, slots=True)
class ObjectChange:
    at: float
    """Seconds since 1970."""
    owner: Key
    """The ManagedResource for which it was done."""
    action: Action
    kind: str
    key: Key
    fields: tuple[str, ...] = ()
    """Paths of what was changed, the first of them."""
    more_fields: int = 0


def object_change(
    owner: Key,
    action: Action,
    reference: Mapping[str, Any],
    *,
    at: float,
    fields: Sequence[FieldChange] = (),
) -> ObjectChange:
    """Args: reference: apiVersion, kind, namespace, name; fields: what was changed."""
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
    """Args: limit: how many are kept."""

    def __init__(self, *, limit: int) -> None:
        self._ring: deque[ObjectChange] = deque(maxlen=limit)
        self.limit = limit

    def add(self, changes: Iterable[ObjectChange]) -> None:
        """Args: changes: oldest first."""
        self._ring.extend(changes)

    def newest_first(self, *, owner: Key | None = None) -> Iterator[ObjectChange]:
        """All, or those of one ManagedResource."""
        return (change for change in reversed(self._ring) if owner in {None, change.owner})
