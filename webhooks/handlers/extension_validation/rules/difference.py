"""Changes of a frozen spec by an update, in the words of the original.

An entry reads `<path>: <new> != <old>`, in the order of the fields. Empty lists and maps equal unset ones, quantities
and times count by value. There are no entries if nothing that counts differs.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from kube.clock import format_time
from webhooks.handlers.extension_validation.rules.typed import Typed, members

_MOST_ENTRIES = 10
_LONGEST_VALUE = 256


def differences(new: Any, old: Any) -> list[str]:
    return list(islice(_differences("", new, old), _MOST_ENTRIES))


def _differences(path: str, new: Any, old: Any, *, pointer: str = "") -> Iterator[str]:
    if new == old or (_is_empty(new) and _is_empty(old)):
        return
    match new, old:
        case None, value:
            yield f"{path}: {_nothing(value, pointer)} != {pointer or _shown(value)}"
        case value, None:
            yield f"{path}: {pointer or _shown(value)} != {_nothing(value, pointer)}"
        case Typed(), Typed():
            for member in members(type(new)):
                where = ".".join(part for part in (path, member.embedded, member.go_name) if part)
                ours, theirs = getattr(new, member.attribute), getattr(old, member.attribute)
                yield from _differences(where, ours, theirs, pointer=member.pointer)
        case (list(), list()) | (bytes(), bytes()):
            yield from _list_differences(path, new, old)
        case dict(), dict():
            yield from _map_differences(path, new, old)
        case _:
            yield f"{path}: {_shown(new)} != {_shown(old)}"


def _list_differences(path: str, new: Sequence[Any], old: Sequence[Any]) -> Iterator[str]:
    for index in range(max(len(new), len(old))):
        where = f"{path}.slice[{index}]"
        if index >= len(old):
            yield f"{where}: {_shown(new[index])} != <no value>"
        elif index >= len(new):
            yield f"{where}: <no value> != {_shown(old[index])}"
        else:
            yield from _differences(where, new[index], old[index])


def _map_differences(path: str, new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    for key in [*sorted(new), *sorted(old.keys() - new.keys())]:
        where = f"{path}.map[{key}]"
        if _is_empty(new.get(key)) and _is_empty(old.get(key)):
            continue
        if key not in old:
            yield f"{where}: {_shown(new[key])} != <does not have key>"
        elif key not in new:
            yield f"{where}: <does not have key> != {_shown(old[key])}"
        else:
            yield from _differences(where, new[key], old[key])


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | dict | bytes) and not value)


def _nothing(other: Any, pointer: str) -> str:
    """Text for an unset value, depending on the other one."""
    if not pointer and isinstance(other, list | bytes):
        return "<nil slice>"
    return "<nil map>" if not pointer and isinstance(other, dict) else "<nil pointer>"


def _shown(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _text(value: Any) -> str:
    """Format a value like Go's %v, but with the value instead of an address."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
        case datetime():
            return format_time(value)
        case list() | bytes():
            # A list may be as long as a request, so only as many elements as can be shown.
            return f"[{' '.join(map(_text, value[:_LONGEST_VALUE]))}]"
        case dict():
            some = sorted(value)[:_LONGEST_VALUE]
            return f"map[{' '.join(f'{key}:{_text(value[key])}' for key in some)}]"
        case Typed():
            groups = []
            for embedded, fields in groupby(members(type(value)), lambda member: member.embedded):
                found = ((getattr(value, field.attribute), field.empty) for field in fields)
                text = " ".join(empty if part is None else _text(part) for part, empty in found)
                groups.append(f"{{{text}}}" if embedded else text)
            return f"{{{' '.join(groups)}}}"
        case _:
            return str(value)
