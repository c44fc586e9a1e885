"""Objects as large as an API server stores them, and what is kept of them in memory.

`inflated` makes hostile objects of a plausible one: each has one value that is as large as etcd allows, in every way in
which JSON can be large at that place. `retained` measures in bytes.
"""

import copy
import gc
import sys
from collections.abc import Collection, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from kube.objects import Object

Place = tuple[str | int, ...]
"""Of a value in an object."""

STORED = 1_400_000
"""Bytes of an object in JSON: etcd takes requests of 1.5 MiB."""
_ANNOTATIONS = 250_000
"""Bytes of all annotations of an object: the API server takes 256 KiB."""
_LONGEST_LABEL = 63
_OF_TEXTS = ("labels", "annotations", "data", "matchLabels")
_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType)
_SHORT = {("metadata", field) for field in ("name", "namespace", "uid", "resourceVersion")}
"""What the API server itself keeps short."""


def retained(value: Any, *, beside: Collection[int] = ()) -> int:
    """Bytes of a value and of all that it refers to, each counted once.

    Args: beside: the identities of what is there anyway.
    """
    seen, total, left = set(beside), 0, [value]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, _SHARED):
            continue
        seen.add(id(each))
        total += sys.getsizeof(each)
        left += gc.get_referents(each)
    return total


def inflated(sample: Object, places: Collection[Place], *, size: int = STORED) -> Iterator[tuple[str, Object]]:
    """The sample with the value at each of these places as large as it can be, and what was done."""
    for place in sorted(places, key=str):
        if place[:2] in _SHORT:
            continue
        room = min(size, _ANNOTATIONS) if place[:2] == ("metadata", "annotations") else size
        for what, value in _large(place, _at(sample, place), room):
            yield f"{'.'.join(map(str, place))}: {what}", _with(sample, place, value)


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def _with(obj: Any, place: Place, value: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return value
    changed = copy.copy(obj)
    changed[place[0]] = _with(obj[place[0]], place[1:], value)
    return changed


def _large(place: Place, value: Any, room: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, str) and place[:2] != ("metadata", "labels"):
        yield "a long text", "".join(f"{number:x}" for number in range(room // 5))
    elif isinstance(value, list):
        yield "many empty objects", [{} for _ in range(room // 3)]
        yield "many texts", [str(number) for number in range(room // 9)]
        for entry in value[:1]:
            copies = _copies(entry, room)
            yield "many entries", [_renamed(entry, number) for number in range(copies)]
    elif isinstance(value, dict):
        if place[-1] not in _OF_TEXTS:
            yield "many empty objects", {**value, **{f"k{number}": {} for number in range(room // 11)}}
            return
        yield "many fields", {**value, **{f"k{number}": "" for number in range(room // 11)}}
        for name, entry in value.items():
            copies = room // (len(name) + len(entry) + 10)
            yield f"many like {name}", {**value, **{f"{name}{number}": entry for number in range(copies)}}


def _copies(entry: Any, room: int) -> int:
    return room // (len(str(entry)) + 8)


def _renamed(entry: Any, number: int) -> Any:
    """Another one of the same kind: with each text in it changed at its end."""
    if isinstance(entry, str):
        return f"{entry}{number}"
    if isinstance(entry, dict):
        return {name: _renamed(value, number) for name, value in entry.items()}
    return [_renamed(each, number) for each in entry] if isinstance(entry, list) else entry
