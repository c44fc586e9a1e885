"""Limits of a review from any client: number of values in its JSON, and in each object in it.

A value takes much more memory than its text, and time in every step: a body of seven megabytes may have millions.
Values are only counted in bodies that are long enough to have too many.

An update contains an object twice, new and old. The limit of a single object is therefore less than half of that of a
review: every object that can be created can be updated. Managed fields do not count, since each client that writes an
object adds to them; if a review has too many values with them, they are removed before parsing.
"""

import msgspec

MAX_VALUES = 250_000
"""Values of a body. The largest objects, CloudProfiles of a megabyte, have some fifty thousand; an update has two."""
MAX_VALUES_OF_OBJECT = 100_000
"""Values of an object that is created or grows, without its status. The rest of a review has room for both versions."""

_SEPARATORS = b",[{"
_MANAGED_FIELDS = "managedFields"


class TooManyValues(ValueError):
    def __init__(self, limit: str) -> None:
        super().__init__(f"too many values: limit is {limit}")


def demand_few_values(body: bytes) -> None:
    """Refuse a body with too many values.

    Raises:
        TooManyValues: it has more than `MAX_VALUES`.
    """
    if _has_more(body, MAX_VALUES):
        raise TooManyValues(str(MAX_VALUES))


def with_few_values(body: bytes) -> bytes:
    """Return the body of a review, if necessary without managed fields.

    Raises:
        TooManyValues: it has too many values even without them.
    """
    if _has_more(body, MAX_VALUES):
        body = _without_managed_fields(body)
        demand_few_values(body)
    return body


def demand_small_object(size: int, obj: object, old: object) -> None:
    """Refuse an object with too many values, unless it had as many before.

    Args:
        size: bytes of the body that contains both objects.
        obj: object to store.
        old: object that it replaces; None if there is none.

    Raises:
        TooManyValues: it has more than `MAX_VALUES_OF_OBJECT`, and more than before.
    """
    if size <= MAX_VALUES_OF_OBJECT:
        return  # an empty list counts twice, and takes three bytes
    found = _values_of(_written(obj))
    if found > MAX_VALUES_OF_OBJECT and (old is None or found > _values_of(_written(old))):
        raise TooManyValues(f"{MAX_VALUES_OF_OBJECT} of an object - make it smaller")


def _written(obj: object) -> object:
    """Parts of an object that its authors write: without status and managed fields."""
    if not isinstance(obj, dict):
        return obj
    written = {name: value for name, value in obj.items() if name != "status"}
    if isinstance(meta := obj.get("metadata"), dict):
        written["metadata"] = {name: value for name, value in meta.items() if name != _MANAGED_FIELDS}
    return written


def _values_of(value: object) -> int:
    """Number of values, counted as in a body: empty lists and objects count twice."""
    count, left = 0, [value]
    while left:
        each = left.pop()
        count += 1
        if isinstance(each, dict | list):
            count += not each
            left.extend(each.values() if isinstance(each, dict) else each)
    return count


def _has_more(text: bytes, most: int) -> bool:
    # A value takes at least two bytes, and each but the first follows a comma or begins a list or an object.
    return len(text) > 2 * most and _separators(text) >= most and _has_too_many(text, most)


def _has_too_many(text: bytes, most: int) -> bool:
    """Whether too many values are outside of strings. Text after a syntax error is irrelevant: the parser stops
    there.
    """
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Field names included, there are at most two strings per value.
    if text.count(b'"') > 4 * most:
        return True
    return _separators(b"".join(text.split(b'"')[::2])) >= most


def _separators(text: bytes) -> int:
    return len(text) - len(text.translate(None, _SEPARATORS))


# --- managed fields


class _Metadata(msgspec.Struct, rename="camel"):
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct):
    metadata: _Metadata | None = None


class _Request(msgspec.Struct, rename="camel"):
    object: _Object | None = None
    old_object: _Object | None = None


class _Review(msgspec.Struct):
    request: _Request | None = None


def _without_managed_fields(body: bytes) -> bytes:
    """Body of a review without managed fields; unchanged if it is no review."""
    try:
        request = msgspec.json.decode(body, type=_Review).request
    except (msgspec.MsgspecError, RecursionError):
        return body
    for obj in () if request is None else (request.object, request.old_object):
        if obj is not None and obj.metadata is not None and (managed := bytes(obj.metadata.managed_fields)):
            name = f'"{_MANAGED_FIELDS}":'.encode()
            body = body.replace(name + managed, name + b"null", 1)
    return body
