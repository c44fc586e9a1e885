"""What differs between two objects, by path, in words; what is secret is masked."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kube.objects import Object
from kubectl_mr.output import as_yaml
from kubectl_mr.style import DIM, GREEN, RED, Line, Word

_MISSING: Any = object()
_SECRET_PARTS = ("data.", "stringData.")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COMPARED = frozenset({"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"})


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs; `_MISSING` for one that is not there."""

    path: str
    before: Any
    after: Any

    def json(self) -> Object:
        fields = {"path": self.path, "before": self.before, "after": self.after}
        return {name: value for name, value in fields.items() if value is not _MISSING}


def changes(before: Object, after: Object) -> list[Change]:
    """From one object to another; status, and what the API server counts and stamps itself, is not compared."""
    found = _compared("", _comparable(before), _comparable(after))
    return [_masked(change, kind=after.get("kind") or "") for change in found]


def _comparable(obj: Object) -> Object:
    meta = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _NOT_COMPARED}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def _compared(path: str, before: Any, after: Any) -> Iterator[Change]:
    if before is _MISSING or after is _MISSING:
        yield Change(path, before, after)
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            step = f"{path}.{_quoted(name)}" if path else _quoted(name)
            yield from _compared(step, before.get(name, _MISSING), after.get(name, _MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compared_lists(path, before, after)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield Change(path, before, after)


def _compared_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Change]:
    if _is_named(before) and _is_named(after):
        # Containers and the like: what was put between two of them has not changed all that follow.
        old, new = ({item["name"]: item for item in items} for items in (before, after))
        for name in [*old, *(name for name in new if name not in old)]:
            yield from _compared(f"{path}[{name}]", old.get(name, _MISSING), new.get(name, _MISSING))
        if set(old) == set(new) and list(old) != list(new):
            yield Change(f"{path} (order)", list(old), list(new))
        return
    for index in range(max(len(before), len(after))):
        old_item = before[index] if index < len(before) else _MISSING
        new_item = after[index] if index < len(after) else _MISSING
        yield from _compared(f"{path}[{index}]", old_item, new_item)


def _is_named(items: Sequence[Any]) -> bool:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _quoted(name: str) -> str:
    """Of a field in a path; names with dots would be read as several."""
    return f'["{name}"]' if "." in name or "/" in name else name


# --- masking


def _masked(change: Change, *, kind: str) -> Change:
    is_secret = kind == "Secret" and (change.path in {"data", "stringData"} or change.path.startswith(_SECRET_PARTS))
    if not is_secret and _LAST_APPLIED not in change.path:
        return change
    before, after = (
        value if value is _MISSING else f"*** ({when})"
        for value, when in ((change.before, "before"), (change.after, "after"))
    )
    return Change(change.path, before, after)


# --- words


def described(change: Change) -> list[Line]:
    """`path`, then what was and what is, each with its mark."""
    lines: list[Line] = [["  ", change.path]]
    if _is_long(change.before) and _is_long(change.after):
        return [*lines, *_lines_of_text(change.before, change.after)]
    if change.before is not _MISSING:
        lines += _marked("- ", change.before, RED)
    if change.after is not _MISSING:
        lines += _marked("+ ", change.after, GREEN)
    return lines


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _marked(mark: str, value: Any, color: str) -> list[Line]:
    text = value if isinstance(value, str) else as_yaml([value]) if value else orjson.dumps(value).decode()
    return [["    ", Word(f"{mark}{line}", color)] for line in _lines(text.removesuffix("...\n"))]


def _lines_of_text(before: str, after: str) -> Iterator[Line]:
    compared = difflib.unified_diff(_lines(before), _lines(after), lineterm="", n=1)
    for line in list(compared)[2:]:
        color = {"+": GREEN, "-": RED, "@": DIM}.get(line[:1], "")
        mark, text = line[:1], line[1:]
        yield ["    ", Word(line if mark == "@" else f"{mark} {text}", color)]


def _lines(text: str) -> list[str]:
    """By line breaks alone: what else may separate lines is a part of them, and a difference."""
    return text.removesuffix("\n").split("\n")
