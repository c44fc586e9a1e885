"""Objects kept in memory, within bounds: some are as large as etcd permits, perhaps on purpose.

As dicts and lists JSON takes up to seventy times its length. So stores pack large objects that they keep as JSON
(`bounded`): one takes no more than its text, compressed; recently unpacked ones stay unpacked, up to a bound for the
whole process. Values of projections in other forms are small, or refused: `TooLargeError` names the bound.

Stores hold no whole objects. `RecentObjects` has the latest ones, most of them compressed: one that is still there
saves a GET; if newer ones have displaced it, the GET is made.
"""

import contextlib
import functools
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import orjson

from kube.errors import KubeError
from kube.objects import Object, resource_version

if TYPE_CHECKING:
    import msgspec

LARGE = 16 << 10
"""Bytes of a manifest from which on it is handled in turn with others of that size."""
_COMPRESS_FROM, _COMPRESS_BELOW = 512, 64 << 10
"""Bytes; compressing the upper limit blocks the event loop for a millisecond."""
_PACKED_FROM = 16 << 10
"""Bytes as MessagePack; hardly any real object is larger."""
_UNPACKED = 1 << 20
"""Bytes of MessagePack of the objects that stay unpacked: those that are read again and again."""

_PLAIN_PART = 32
"""Denominator of the share of memory for recent objects that are not compressed yet."""


class TooLargeError(KubeError):
    """Projection of an object that exceeds the limit of its view."""


class Packed:
    """Object as compressed MessagePack."""

    __slots__ = ("_body", "_size", "_type")

    def __init__(self, obj: Object, body: bytes) -> None:
        self._type, self._body, self._size = type(obj), zlib.compress(body, 1), len(body)

    def unpacked(self) -> Object:
        """Unpacked object; shared, like everything from stores."""
        known = _recent.get(self)
        if known is None:
            known = self._type(_decoder().decode(zlib.decompress(self._body)))
            _recent.put(self, known, self._size)
        return known


class _Recent:
    """Recently unpacked objects. Args: limit: their total size in bytes, packed but not compressed."""

    def __init__(self, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._objects: OrderedDict[Packed, tuple[Object, int]] = OrderedDict()

    def get(self, packed: Packed) -> Object | None:
        found = self._objects.get(packed)
        if found is None:
            return None
        with contextlib.suppress(KeyError):  # another thread has evicted it meanwhile
            self._objects.move_to_end(packed)
        return found[0]

    def put(self, packed: Packed, obj: Object, size: int) -> None:
        if packed in self._objects:
            return  # another thread has unpacked it meanwhile
        self._objects[packed] = obj, size
        self._size += size
        # The last one stays regardless of its size: the caller is about to read it.
        while self._size > self._limit and len(self._objects) > 1:
            _, (_, freed) = self._objects.popitem(last=False)
            self._size -= freed


_recent = _Recent(_UNPACKED)


def bounded(value: Any, *, most: int) -> Any:
    """Value in the form in which it is kept: packed if it is large JSON.

    Args: most: limit for values other than JSON, in bytes as MessagePack.

    Raises: TooLargeError; RecursionError: it nests too deeply.
    """
    body = _encoder().encode(value)
    if len(body) <= _PACKED_FROM:
        return value
    if isinstance(value, dict):
        return Packed(value, body)
    if len(body) > most:
        raise TooLargeError(f"{len(body) >> 10} KiB would be stored, the limit is {most >> 10} KiB")
    return value


@functools.cache
def _encoder() -> "msgspec.msgpack.Encoder":
    import msgspec  # only here: tools have no stores

    return msgspec.msgpack.Encoder(enc_hook=_parts)


@functools.cache
def _decoder() -> "msgspec.msgpack.Decoder[Any]":
    import msgspec

    return msgspec.msgpack.Decoder()


def _parts(value: Any) -> Any:
    """Values of the slots: encoding of a class that is no dataclass."""
    return [getattr(value, name) for name in value.__slots__]


def compact(obj: Object) -> bytes:
    """JSON to keep: orjson's own result holds on to a buffer of several times its length."""
    return bytes(memoryview(orjson.dumps(obj)))


def digest(content: Any) -> bytes:
    """Hash of 16 bytes over JSON, independent of the order of its fields."""
    try:
        return hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
    except TypeError:
        return _digest_of_deep(content)


def _digest_of_deep(content: Any) -> bytes:
    """Digest of content that nests more deeply than orjson supports."""
    hashed, left = hashlib.blake2b(digest_size=16), [content]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            hashed.update(b"{%d" % len(value))
            for name in sorted(value):
                left += (value[name], name)
        elif isinstance(value, list):
            hashed.update(b"[%d" % len(value))
            left += reversed(value)
        else:
            text = orjson.dumps(value)
            hashed.update(b"%d:%b" % (len(text), text))
    return hashed.digest()


def compressed(body: bytes) -> bytes:
    """JSON of any size in its stored form, for a thread: compressed, unless that saves little."""
    return zlib.compress(body, 1) if len(body) >= _COMPRESS_FROM else body


def packed(body: bytes) -> bytes:
    """JSON in its stored form: compressed, unless that saves little or would take too long."""
    return zlib.compress(body, 1) if _COMPRESS_FROM <= len(body) < _COMPRESS_BELOW else body


def unpacked(body: bytes) -> Object:
    obj: Object = orjson.loads(body if body[:1] == b"{" else zlib.decompress(body))
    return obj


class RecentObjects:
    """Whole objects, the latest versions. Args: limit: bytes, counted as stored.

    The newest few are not compressed yet: most objects change again soon after they were written, and a thousand
    that were just created need not be compressed at all, which was 2 % of the CPU of creating them.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._bodies: OrderedDict[Hashable, bytes] = OrderedDict()
        self._plain: OrderedDict[Hashable, int] = OrderedDict()
        """Lengths of the bodies that are not compressed yet."""
        self._plain_size = 0

    def put(self, name: Hashable, obj: Object) -> None:
        self.drop(name)
        try:
            body = compact(obj)
        except TypeError:
            return  # it nests too deeply
        self._bodies[name] = body
        self._plain[name] = len(body)
        self._size += len(body)
        self._plain_size += len(body)
        while self._plain_size > self._limit // _PLAIN_PART:
            self._compress(next(iter(self._plain)))
        while self._size > self._limit:
            self.drop(next(iter(self._bodies)))

    def _compress(self, name: Hashable) -> None:
        self._plain_size -= self._plain.pop(name)
        body = self._bodies[name]
        self._bodies[name] = packed(body)
        self._size += len(self._bodies[name]) - len(body)

    def get(self, name: Hashable, *, version: int) -> Object | None:
        """Object, if it is here in exactly this version."""
        body = self._bodies.get(name)
        if body is None:
            return None
        obj = unpacked(body)
        return obj if resource_version(obj) == version else None

    def drop(self, name: Hashable) -> None:
        body = self._bodies.pop(name, None)
        if body is not None:
            self._size -= len(body)
            self._plain_size -= self._plain.pop(name, 0)
