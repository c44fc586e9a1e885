"""Differences between two objects, by path: for dry runs, writes, and drift that was corrected.

Values of Secrets are always masked. The changes in Events and logs (`field_changes`) also omit values that may be
credentials, as in `redaction`: variables and arguments of containers, and fields with such names.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from kube.objects import Object

MISSING: Any = object()
"""Value of a missing field."""
_COUNTED = 100
"""Maximum number of reported differences; more are not worth the time."""
_SECRET_FIELDS = frozenset({"data", "stringData"})
_SEPARATOR = re.compile(r"[.\[]")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COMPARED = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"})

_LONGEST_VALUE = 40
_LONGEST_PATH = 160
_CLOSED = re.compile(
    r"\benv\[[^]]*\]\.value$"
    r"|\.(?:command|args)(?:\[|$)"
    r"|(?:passw(?:or)?d|passphrase|secret|token|credential|private-?key|api-?key|access-?key)"
    r"""(?:[^.\["]*|[^"]*"\])$""",
    re.IGNORECASE,
)
"""Paths whose values may be credentials."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs; `MISSING` if it does not exist."""

    path: str
    before: Any
    after: Any

    def json(self) -> Object:
        fields = {"path": self.path, "before": self.before, "after": self.after}
        return {name: value for name, value in fields.items() if value is not MISSING}


def changes(before: Object, after: Object) -> Iterator[Change]:
    """Changes from one object to another, without status and the fields that the API server sets itself."""
    is_secret = after.get("kind") == "Secret"
    return (_masked(change, is_secret=is_secret) for change in _compared("", _comparable(before), _comparable(after)))


def _comparable(obj: Object) -> Object:
    meta = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _NOT_COMPARED}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def _compared(path: str, before: Any, after: Any) -> Iterator[Change]:
    if before is MISSING or after is MISSING:
        yield Change(path, before, after)
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _compared(_below(path, name), before.get(name, MISSING), after.get(name, MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compared_lists(path, before, after)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Change(path, before, after)


def _compared_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Change]:
    if _is_named(before) and _is_named(after):
        # Containers and the like: an insertion does not change all items that follow.
        old, new = ({item["name"]: item for item in items} for items in (before, after))
        for name in [*old, *(name for name in new if name not in old)]:
            yield from _compared(f"{path}[{name}]", old.get(name, MISSING), new.get(name, MISSING))
        if set(old) == set(new) and list(old) != list(new):
            yield Change(f"{path} (order)", list(old), list(new))
        return
    for index in range(max(len(before), len(after))):
        old_item = before[index] if index < len(before) else MISSING
        new_item = after[index] if index < len(after) else MISSING
        yield from _compared(f"{path}[{index}]", old_item, new_item)


def _is_named(items: Sequence[Any]) -> bool:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _below(path: str, name: str) -> str:
    """Path of a field; names with dots are quoted."""
    if "." in name or "/" in name or not name:
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def _masked(change: Change, *, is_secret: bool) -> Change:
    if not (is_secret and _in_secret(change.path)) and _LAST_APPLIED not in change.path:
        return change
    before, after = (
        value if value is MISSING else f"*** ({when})"
        for value, when in ((change.before, "before"), (change.after, "after"))
    )
    return Change(change.path, before, after)


def _in_secret(path: str) -> bool:
    return _SEPARATOR.split(path)[0] in _SECRET_FIELDS


# --- in a few words


@dataclass(frozen=True, slots=True)
class FieldChange:
    path: str
    values: str
    """Values such as `5 -> 2`, if they are short and no credentials; else empty."""

    def __str__(self) -> str:
        return f"{self.path} {self.values}" if self.values else self.path


def field_changes(before: Object, after: Object) -> list[FieldChange]:
    """The changes from one object to another; for a Secret even without the names in it."""
    is_secret = after.get("kind") == "Secret"
    found: dict[str, FieldChange] = {}
    for change in islice(changes(before, after), _COUNTED):
        is_hidden = is_secret and _in_secret(change.path)
        path = _SEPARATOR.split(change.path)[0] if is_hidden else change.path[:_LONGEST_PATH]
        found[path] = FieldChange(path, "" if is_hidden or _is_closed(change) else _values(change))
    return list(found.values())


def _is_closed(change: Change) -> bool:
    return _LAST_APPLIED in change.path or bool(_CLOSED.search(change.path))


def _values(change: Change) -> str:
    before, after = _value(change.before), _value(change.after)
    return f"{before} -> {after}" if before and after else ""


def _value(value: Any) -> str:
    """Text of a value; empty if it does not fit on a line."""
    if value is MISSING:
        return "(none)"
    if isinstance(value, dict | list) or (isinstance(value, str) and "\n" in value):
        return ""
    is_word = isinstance(value, str) and value and not any(character.isspace() for character in value)
    return _shortened(value if is_word else orjson.dumps(value).decode(), _LONGEST_VALUE)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
