"""What a review may hold, from any client: how many values its JSON has, and each object in it.

A value takes much more memory than its text, and time in every step: a body of seven megabytes may have millions.
Counting is for what is long enough to have too many. All else costs a look at its length.

An update has an object twice, as it is and as it was. What a single object may have is therefore less than half of what
a review may have: what can be created can be updated. Managed fields do not count, since each client that writes an
object adds to them; where a review has too many values with them, they are left out before it is parsed.
"""

import msgspec

MAX_VALUES = 250_000
"""Of a body. The largest objects, CloudProfiles of a megabyte, have some fifty thousand; an update has two of them."""
MAX_VALUES_OF_OBJECT = 100_000
"""Of an object that is created or grows, without its status. What is left of a review is for two of these."""

_SEPARATORS = b",[{"
_MANAGED_FIELDS = "managedFields"


class TooManyValues(ValueError):
    def __init__(self, limit: str) -> None:
        super().__init__(f"too many values: limit is {limit}")


def demand_few_values(body: bytes) -> None:
    """Raises: TooManyValues."""
    if _has_more(body, MAX_VALUES):
        raise TooManyValues(str(MAX_VALUES))


def with_few_values(body: bytes) -> bytes:
    """The body of a review, if need be without managed fields. Raises: TooManyValues."""
    if _has_more(body, MAX_VALUES):
        body = _without_managed_fields(body)
        demand_few_values(body)
    return body


def demand_small_object(size: int, obj: object, old: object) -> None:
    """Who has too many already may go on, without more of them.

    Args:
        size: of the body that both are from.
        obj: as it is to be stored.
        old: what it replaces; None: nothing.

    Raises: TooManyValues.
    """
    if size <= MAX_VALUES_OF_OBJECT:
        return  # an empty list counts twice, and takes three bytes
    found = _values_of(_written(obj))
    if found > MAX_VALUES_OF_OBJECT and (old is None or found > _values_of(_written(old))):
        raise TooManyValues(f"{MAX_VALUES_OF_OBJECT} of an object - take something out of it")


def _written(obj: object) -> object:
    """What its authors write of an object."""
    if not isinstance(obj, dict):
        return obj
    written = {name: value for name, value in obj.items() if name != "status"}
    if isinstance(meta := obj.get("metadata"), dict):
        written["metadata"] = {name: value for name, value in meta.items() if name != _MANAGED_FIELDS}
    return written


def _values_of(value: object) -> int:
    """Counted as in a body: lists and objects without anything in them count twice."""
    count, left = 0, [value]
    while left:
        each = left.pop()
        count += 1
        if isinstance(each, dict | list):
            count += not each
            left.extend(each.values() if isinstance(each, dict) else each)
    return count


def _has_more(text: bytes, most: int) -> bool:
    # A value takes two bytes at least, and each but the first follows a comma or is the first of a list or an object.
    return len(text) > 2 * most and _separators(text) >= most and _has_too_many(text, most)


def _has_too_many(text: bytes, most: int) -> bool:
    """Without what is in strings. What follows a mistake does not matter, since there the parser stops."""
    text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # With the names of fields there are at most two strings for a value.
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
    """The body of a review; as it is, if it is none."""
    try:
        request = msgspec.json.decode(body, type=_Review).request
    except (msgspec.MsgspecError, RecursionError):
        return body
    for obj in () if request is None else (request.object, request.old_object):
        if obj is not None and obj.metadata is not None and (managed := bytes(obj.metadata.managed_fields)):
            name = f'"{_MANAGED_FIELDS}":'.encode()
            body = body.replace(name + managed, name + b"null", 1)
    return body
