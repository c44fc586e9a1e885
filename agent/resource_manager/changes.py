"""What this process has done to objects lately, for people who look at the status page.

A ring of bounded entries: the oldest goes first, and nothing outlives the process. Of a change the paths of the fields
are kept and never their values, so nothing of a Secret or of a manifest gets in here. Where nobody can look at it,
there is no room in it, and noting costs nothing.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from kube.objects import Key, Object

KEPT = 1000
_FIELDS = 8
"""Shown of one change; of the others only the number is kept, and that only up to a bound."""
_COUNTED = 100
_LONGEST_PATH = 160
_MISSING: Any = object()
_NOT_COMPARED = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"})
_CLOSED = frozenset({"data", "stringData"})
"""Of a Secret not even the names in it are shown."""


class Action(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    """Since its manifest was changed."""
    PUT_RIGHT = "put right"
    """Somebody else had changed it."""
    MADE_AGAIN = "made again"
    """Somebody else had deleted it."""
    DELETED = "deleted"

    @property
    def is_repair(self) -> bool:
        return self in {Action.PUT_RIGHT, Action.MADE_AGAIN}


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
    before: Object | None = None,
    after: Object | None = None,
) -> ObjectChange:
    """Args: reference: apiVersion, kind, namespace, name; before, after: the live object, if it was changed."""
    kind = reference.get("kind") or ""
    paths: list[str] = []
    if before is not None and after is not None:
        paths = list(islice(changed_fields(before, after, is_secret=kind == "Secret"), _COUNTED))
    return ObjectChange(
        at=at,
        owner=owner,
        action=action,
        kind=kind,
        key=Key(reference.get("namespace") or "", reference.get("name") or ""),
        fields=tuple(path[:_LONGEST_PATH] for path in paths[:_FIELDS]),
        more_fields=max(len(paths) - _FIELDS, 0),
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


def changed_fields(before: Object, after: Object, *, is_secret: bool = False) -> Iterator[str]:
    """Paths of what differs, such as `spec.containers[0].image`; not status, nor what the API server counts itself."""
    for name in _names(before, after):
        old, new = before.get(name, _MISSING), after.get(name, _MISSING)
        if name == "status" or old == new:
            continue
        if is_secret and name in _CLOSED:
            yield name
        elif name == "metadata":
            yield from _compared(name, _content(old), _content(new))
        else:
            yield from _compared(name, old, new)


def _content(meta: Any) -> Any:
    if not isinstance(meta, dict):
        return meta
    return {name: value for name, value in meta.items() if name not in _NOT_COMPARED}


def _compared(path: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in _names(before, after):
            yield from _compared(f"{path}{_step(name)}", before.get(name, _MISSING), after.get(name, _MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            old, new = (items[index] if index < len(items) else _MISSING for items in (before, after))
            yield from _compared(f"{path}[{index}]", old, new)
    elif before != after:
        yield path


def _names(before: Object, after: Object) -> Iterator[str]:
    yield from before
    yield from (name for name in after if name not in before)


def _step(name: str) -> str:
    """Names with dots would be read as several."""
    return f'["{name}"]' if "." in name or "/" in name or not name else f".{name}"
