"""JSON of objects, with any content.

An API server stores content that other parsers refuse: ten thousand levels of nesting, in `metadata.managedFields` of
any object and in custom resources. Others send numbers that are infinite, and text that is no UTF-8. One such object
must not hide all others, so its unreadable parts are left out, and all else is read: such an object is an `InPart`.
`LEFT_OUT` replaces these parts; no written object may contain it (`dumps`), so that nothing is destroyed.

orjson reads usual JSON. Only JSON that it refuses is scanned here, bracket by bracket, in linear time and by turns with
others on the event loop.

`metadata.managedFields` are a third of an object and more, and few callers need them, so the others do not parse them:
they are cut out of the text, up to the first brackets that may end a list of objects. If these are in a string, or end
another list, then a quote or a bracket lacks its counterpart, and the rest is no JSON. If it is, and the placeholder is
found at `metadata.managedFields`, then the cut was right; else all is parsed.
"""

import json
import math
import re
import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Any

import orjson

from kube.errors import NotWritable
from kube.objects import Object, key
from kube.runtime.yielding import Yielding

MAX_DEPTH = 200
"""Levels kept of an object that nests too deeply; real ones have about fifty."""

LEFT_OUT = f"<left out: {secrets.token_hex(16)}>"
"""Text that occurs in no object."""

NO_OBJECT = "is not a JSON object"

_CUT = f"<cut: {secrets.token_hex(16)}>"
_CUT_JSON = b'"managedFields":' + orjson.dumps(_CUT)
_MANAGED_FIELDS, _END_OF_LIST = b'"managedFields":[', b"}]"
_LEFT_OUT_JSON = orjson.dumps(LEFT_OUT)
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL)
"""Next bracket outside of strings, with the text before it."""
_ITEMS = re.compile(rb'"items"\s*:\s*\[\Z')
_NOTHING = re.compile(rb"[\s,]*")
_OPENING = b"{["
_BRACKETS_A_TURN = 4096
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_DIGITS = 20


class InPart(dict[str, Any]):
    """Object with parts left out: those that nest too deeply, or are no text or number."""


class NotReadable(ValueError):
    """Predicate about a text, such as `is not valid JSON: ...`."""


def is_whole(obj: object) -> bool:
    return not isinstance(obj, InPart)


def nesting_less(obj: dict[str, Any]) -> InPart | None:
    """Copy without parts that nest too deeply to be written; None if the object can be written unchanged."""
    try:
        orjson.dumps(obj)
    except TypeError:
        return InPart(_cut_down(obj, MAX_DEPTH))
    return None


def _cut_down(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return LEFT_OUT
    if isinstance(value, list):
        return [_cut_down(each, levels - 1) for each in value]
    return {name: _cut_down(each, levels - 1) for name, each in value.items()}


# --- without managed fields


def without_managed_fields(body: bytes) -> tuple[bytes, int]:
    """Cut managed fields out of the JSON where that is simple; return it with the number of cuts, see `take_cuts`."""
    kept, at, cuts = [], 0, 0
    while (begin := body.find(_MANAGED_FIELDS, at)) >= 0 and (end := body.find(_END_OF_LIST, begin)) >= 0:
        kept += [body[at:begin], _CUT_JSON]
        at, cuts = end + len(_END_OF_LIST), cuts + 1
    return (b"".join((*kept, body[at:])), cuts) if cuts else (body, 0)


def take_cuts(objects: Iterable[Any]) -> int:
    """Remove managed fields, and their placeholders, from metadata; return the number of placeholders."""
    cuts = 0
    for obj in objects:
        meta = obj.get("metadata") if isinstance(obj, dict) else None
        if isinstance(meta, dict):
            cuts += meta.pop("managedFields", None) == _CUT
    return cuts


# --- JSON that orjson refuses


async def salvaged(body: bytes, *, yielding: Yielding | None = None) -> InPart:
    """Readable parts of a JSON object. Raises NotReadable."""
    text = await _pruned(body, yielding or Yielding())
    try:
        loaded = orjson.loads(text)
    except orjson.JSONDecodeError:
        loaded = _leniently(text)
    if not isinstance(loaded, dict):
        raise NotReadable(NO_OBJECT)
    meta = loaded.get("metadata")
    if isinstance(meta, dict) and _LEFT_OUT_JSON in orjson.dumps(meta.get("managedFields")):
        # The owners are known for all fields or for none.
        del meta["managedFields"]
    return InPart(loaded)


async def _pruned(body: bytes, yielding: Yielding) -> bytes:
    """Cut out everything that nests more deeply than `MAX_DEPTH`."""
    kept, begin, depth = [], 0, 0
    async for at, is_opening in _brackets(body, yielding):
        depth += 1 if is_opening else -1
        if is_opening and depth == MAX_DEPTH + 1:
            kept += [body[begin:at], _LEFT_OUT_JSON]
        elif not is_opening and depth == MAX_DEPTH:
            begin = at + 1
    return b"".join((*kept, body[begin:])) if depth <= MAX_DEPTH else body


async def _brackets(body: bytes, yielding: Yielding) -> AsyncIterator[tuple[int, bool]]:
    """Positions of brackets outside of strings, and whether they open."""
    at, count = 0, 0
    while (found := _BRACKET.match(body, at)) is not None:
        at, count = found.end(), count + 1
        yield at - 1, found[1] in _OPENING
        if count % _BRACKETS_A_TURN == 0:
            await yielding.after_long()


def _leniently(text: bytes) -> Any:
    """Parse like Go, in which API servers are written: replace invalid UTF-8. Raises NotReadable."""
    try:
        loaded = json.loads(
            text.decode(errors="replace"),
            strict=False,
            parse_int=_integer,
            parse_float=_finite,
            parse_constant=lambda _: LEFT_OUT,
        )
        # Halves of characters become question marks.
        return orjson.loads(json.dumps(loaded, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise NotReadable(f"is not valid JSON: {error}") from error


def _integer(digits: str) -> int | float | str:
    if len(digits) > _DIGITS or not _SMALLEST <= int(digits) <= _LARGEST:
        return _finite(digits)
    return int(digits)


def _finite(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else LEFT_OUT


# --- a list, item by item


async def list_parts(body: bytes, yielding: Yielding) -> tuple[bytes, list[memoryview]]:
    """JSON of a list without its items, and that of each item. Raises NotReadable: it is not a list of objects."""
    view, items = memoryview(body), list[memoryview]()
    depth, first, last, begin = 0, -1, -1, 0
    async for at, is_opening in _brackets(body, yielding):
        depth += 1 if is_opening else -1
        if first < 0:
            if depth == 2 and is_opening and _ITEMS.search(body, max(at - 32, 0), at + 1):
                first = begin = at + 1
        elif depth == 3 and is_opening:
            _demand_nothing(body, begin, at)
            begin = at
        elif depth == 2 and not is_opening:
            items.append(view[begin : at + 1])
            begin = at + 1
        elif depth == 1:
            _demand_nothing(body, begin, at)
            last = at
            break
    if last < 0:
        raise NotReadable("is not a list of objects in JSON: it has no items")
    return body[: first - 1] + b"null" + body[last + 1 :], items


def _demand_nothing(body: bytes, begin: int, end: int) -> None:
    if _NOTHING.fullmatch(body, begin, end) is None:
        raise NotReadable("is not a list of objects in JSON: it has an item that is not an object")


def dumps(body: Any) -> bytes:
    """Encode as JSON. Raises NotWritable: it can't be encoded, or a part was left out when it was read."""
    try:
        data = orjson.dumps(body)
    except TypeError as error:
        raise NotWritable(f"{_name(body)} can't be written: {error}; remove deeply nested fields") from error
    if LEFT_OUT.encode() in data:
        raise NotWritable(
            f"{_name(body)} can't be written, since it was not read completely; remove deeply nested fields and "
            "invalid numbers"
        )
    return data


def _name(body: Any) -> str:
    obj: Object = body if isinstance(body, dict) else {}
    return f"{obj.get('kind') or 'a patch'} {key(obj)}".rstrip(" ")
