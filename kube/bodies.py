"""A bounded memory for whole objects, compressed unless that took too long.

Stores keep projections, so that memory does not grow by whole copies of big objects. A whole object that is still here
saves a GET; if it was pushed out by newer ones meanwhile, the GET is made.
"""

import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import orjson

from kube.objects import Object, resource_version

_COMPRESS_FROM, _COMPRESS_BELOW = 512, 64 << 10
"""Bytes; to compress as much as that holds up the event loop for a millisecond."""


def compact(obj: Object) -> bytes:
    """JSON to be kept: orjson's own result holds on to a buffer of several times its length."""
    return bytes(memoryview(orjson.dumps(obj)))


def digest(content: Any) -> bytes:
    """16 bytes over JSON, whatever the order of its fields."""
    try:
        return hashlib.blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
    except TypeError:
        return _digest_of_deep(content)


def _digest_of_deep(content: Any) -> bytes:
    """Of what nests more deeply than orjson writes."""
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


def packed(body: bytes) -> bytes:
    """JSON as it is kept: compressed, unless there is little to win or it would take too long."""
    return zlib.compress(body, 1) if _COMPRESS_FROM <= len(body) < _COMPRESS_BELOW else body


def unpacked(body: bytes) -> Object:
    obj: Object = orjson.loads(body if body[:1] == b"{" else zlib.decompress(body))
    return obj


class Bodies:
    """Args: limit: bytes, counted as stored."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._bodies: OrderedDict[Hashable, bytes] = OrderedDict()

    def put(self, name: Hashable, obj: Object) -> None:
        self.drop(name)
        try:
            body = packed(compact(obj))
        except TypeError:
            return  # it nests too deeply
        self._bodies[name] = body
        self._size += len(body)
        while self._size > self._limit:
            _, pushed_out = self._bodies.popitem(last=False)
            self._size -= len(pushed_out)

    def get(self, name: Hashable, *, version: int) -> Object | None:
        """The object, if it is here in exactly this version."""
        body = self._bodies.get(name)
        if body is None:
            return None
        obj = unpacked(body)
        return obj if resource_version(obj) == version else None

    def drop(self, name: Hashable) -> None:
        body = self._bodies.pop(name, None)
        if body is not None:
            self._size -= len(body)
