"""Header compression of HTTP/2 (RFC 7541): a decoder, and an encoder that does not compress.

All is bounded: one byte of a block may refer to an entry of 4 KiB.
"""

from collections import deque
from functools import cache

from webhooks.front_proxy.rules.requests import MOST_FIELDS, Fields

MOST_DECODED = 256 << 10
"""Maximum size of the fields of a block, 32 bytes added for each."""
_TABLE = 4096
"""Default size of the table, which Go's servers do not change."""
_UPDATES = 2
"""Maximum changes of this size, which a block begins with."""
_ENTRY = 32
_LONGEST_INTEGER = 4
"""Bytes after the first."""

_NAMES_AND_VALUES = (
    ":authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200"
    "|:status 204|:status 206|:status 304|:status 400|:status 404|:status 500|accept-charset"
    "|accept-encoding gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age|allow"
    "|authorization|cache-control|content-disposition|content-encoding|content-language|content-length"
    "|content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match"
    "|if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location|max-forwards"
    "|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server|set-cookie"
    "|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate"
)
_STATIC = [
    (name.encode(), value.encode())
    for name, _, value in (entry.partition(" ") for entry in _NAMES_AND_VALUES.split("|"))
]
"""Table of appendix A; its index begins at 1."""

_CODE_LENGTHS = (
    "13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28 6 10 "
    "10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10 13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 "
    "7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6 15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 "
    "14 13 28 20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 "
    "23 24 22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 "
    "23 26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27 "
    "20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26 30"
)
"""Bits of the code of each byte, and of the end of the text (appendix B). The code is canonical, so they define it."""


class Malformed(ValueError):
    """A header block that no conforming client sends, or that is too large."""


class Decoder:
    """Decodes the header blocks of one connection, in their order."""

    def __init__(self) -> None:
        self._table: deque[tuple[bytes, bytes]] = deque()
        self._size = 0
        self._most = _TABLE

    def decode(self, block: bytes) -> Fields:
        """Return the fields of a block.

        Raises:
            Malformed: it is invalid, or its fields are too large.
        """
        fields: Fields = []
        at, left, updates = 0, MOST_DECODED, 0
        while at < len(block):
            first = block[at]
            if first & 0xE0 == 0x20:
                most, at = _integer(block, at, 5)
                updates += 1
                if most > _TABLE or fields or updates > _UPDATES:
                    raise Malformed("the table of headers is too large, or its size changes too often")
                self._most = most
                self._shrink(0)
                continue
            if first & 0x80:
                index, at = _integer(block, at, 7)
                field = self._entry(index)
            else:
                field, at = self._literal(block, at, adds=bool(first & 0x40))
            left -= len(field[0]) + len(field[1]) + _ENTRY
            if left < 0 or len(fields) == MOST_FIELDS:
                raise Malformed("the headers are too large")
            fields.append(field)
        return fields

    def _literal(self, block: bytes, at: int, *, adds: bool) -> tuple[tuple[bytes, bytes], int]:
        index, at = _integer(block, at, 6 if adds else 4)
        if index:
            name = self._entry(index)[0]
        else:
            name, at = _text(block, at)
        value, at = _text(block, at)
        if adds:
            size = len(name) + len(value) + _ENTRY
            self._shrink(size)
            if size <= self._most:
                self._table.appendleft((name, value))
                self._size += size
        return (name, value), at

    def _shrink(self, room: int) -> None:
        """Remove the oldest entries until so much is free."""
        while self._table and self._size + room > self._most:
            name, value = self._table.pop()
            self._size -= len(name) + len(value) + _ENTRY

    def _entry(self, index: int) -> tuple[bytes, bytes]:
        if 1 <= index <= len(_STATIC):
            return _STATIC[index - 1]
        if 0 <= index - len(_STATIC) - 1 < len(self._table):
            return self._table[index - len(_STATIC) - 1]
        raise Malformed("a header refers to an entry that does not exist")


def encode(fields: Fields) -> bytes:
    """Return a block that uses no table, so that it fits a decoder in any state."""
    return b"".join(b"\x00" + _encoded(name) + _encoded(value) for name, value in fields)


def _encoded(text: bytes) -> bytes:
    if len(text) < 0x7F:
        return bytes((len(text),)) + text
    rest, length = len(text) - 0x7F, bytearray((0x7F,))
    while rest >= 0x80:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return bytes(length) + text


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return an integer and the position after it."""
    if at >= len(block):
        raise Malformed("a header block ends in a header")
    most = (1 << bits) - 1
    value, at = block[at] & most, at + 1
    if value < most:
        return value, at
    for shift in range(0, 7 * _LONGEST_INTEGER, 7):
        if at >= len(block):
            break
        byte, at = block[at], at + 1
        value += (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    raise Malformed("a header block has an invalid integer")


def _text(block: bytes, at: int) -> tuple[bytes, int]:
    is_compressed = at < len(block) and bool(block[at] & 0x80)
    length, at = _integer(block, at, 7)
    content = block[at : at + length]
    if len(content) < length:
        raise Malformed("a header block ends in a header")
    return (_uncompressed(content) if is_compressed else content), at + length


def _uncompressed(content: bytes) -> bytes:
    steps, state, decoded = _automaton(), 0, bytearray()
    for byte in content:
        for half in (byte >> 4, byte & 0xF):
            state, symbol = steps[state * 16 + half]
            if symbol >= 0:
                decoded.append(symbol)
            if state < 0:
                raise Malformed("a header has an invalid Huffman code")
    if state not in _padded():
        raise Malformed("a header has an invalid Huffman code")
    return bytes(decoded)


@cache
def _tree() -> tuple[list[list[int]], list[int]]:
    """Return the inner nodes of the code's tree, and those of the path of ones, by which texts are padded.

    A child is the number of a node, or `~symbol`.
    """
    lengths = [int(each) for each in _CODE_LENGTHS.split()]
    nodes: list[list[int]] = [[0, 0]]
    code = previous = 0
    for symbol in sorted(range(len(lengths)), key=lambda each: (lengths[each], each)):
        length = lengths[symbol]
        code <<= length - previous
        previous, node = length, 0
        for bit in range(length - 1, 0, -1):
            branch = code >> bit & 1
            if not nodes[node][branch]:
                nodes.append([0, 0])
                nodes[node][branch] = len(nodes) - 1
            node = nodes[node][branch]
        nodes[node][code & 1] = ~symbol
        code += 1
    padding, node = [0], 0
    for _ in range(7):
        node = nodes[node][1]
        padding.append(node)
    return nodes, padding


@cache
def _padded() -> frozenset[int]:
    return frozenset(_tree()[1])


@cache
def _automaton() -> list[tuple[int, int]]:
    """Return next node and symbol (-1: none) for each node and each half of a byte; node -1 is an error.

    No code has less than five bits, so half a byte ends at most one.
    """
    nodes, end = _tree()[0], 256
    steps: list[tuple[int, int]] = []
    for start in range(len(nodes)):
        for half in range(16):
            node, symbol = start, -1
            for bit in (8, 4, 2, 1):
                node = nodes[node][1 if half & bit else 0]
                if node < 0:
                    symbol, node = ~node, 0
                    if symbol == end:
                        node, symbol = -1, -1
                        break
            steps.append((node, symbol))
    return steps
