"""Heads of HTTP/1.1 messages, parsed strictly: proxy and API server must agree where each message ends."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from webhooks.front_proxy.rules.requests import MOST_FIELDS, Fields

_REQUEST = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.1")
_RESPONSE = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2})(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_UPGRADES = (b"websocket", b"spdy/")
SWITCHING = 101
_BODILESS = frozenset({204, 304})


class Malformed(ValueError):
    """A message that no conforming client or server sends, or of a version that is not supported."""


@dataclass(frozen=True, slots=True)
class Body:
    """Length in bytes; None: in chunks. `ends_connection`: until the connection ends."""

    length: int | None = 0
    ends_connection: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    fields: Fields
    body: Body

    @property
    def upgrades(self) -> bool:
        """Whether it requests a stream such as that of exec, attach and port-forward."""
        return b"upgrade" in _tokens(self.fields, b"connection") and any(
            value.lower().startswith(_UPGRADES) for value in _values(self.fields, b"upgrade")
        )

    @property
    def closes(self) -> bool:
        return b"close" in _tokens(self.fields, b"connection")


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    fields: Fields
    body: Body

    @property
    def closes(self) -> bool:
        return self.body.ends_connection or b"close" in _tokens(self.fields, b"connection")


def request(head: bytes) -> Request:
    """Parse a head, up to and including its empty line.

    Raises:
        Malformed: it is invalid, or its length is ambiguous.
    """
    line, fields = _split(head)
    found = _REQUEST.fullmatch(line)
    if found is None:
        raise Malformed("the request line is invalid; send HTTP/1.1 with a path")
    return Request(found[1].decode(), found[2].decode(), fields, _body(fields) or Body())


def response(head: bytes, *, method: str) -> Response:
    """Parse the head of a response to a request with this method.

    Raises:
        Malformed: it is invalid, or its length is ambiguous.
    """
    line, fields = _split(head)
    found = _RESPONSE.fullmatch(line)
    if found is None:
        raise Malformed("the status line is invalid")
    status = int(found[1])
    if method == "HEAD" or status < 200 or status in _BODILESS:
        return Response(status, fields, Body())
    return Response(status, fields, _body(fields) or Body(None, ends_connection=True))


def head_of(wanted: Request, *, target: str, fields: Fields) -> bytes:
    """Return the head of a request with another target and other fields.

    The API server gets `Connection` and `Upgrade` only as this proxy understands them. It must not close its connection
    after a response: uvloop loses the end of one that is larger than its buffers if the other side closes meanwhile.
    """
    kept = [(name, value) for name, value in fields if name.lower() not in {b"connection", b"upgrade", b"keep-alive"}]
    if wanted.upgrades:
        kept += [(b"Connection", b"Upgrade"), *((b"Upgrade", value) for value in _values(wanted.fields, b"upgrade"))]
    lines = [f"{wanted.method} {target} HTTP/1.1".encode(), *(name + b": " + value for name, value in kept)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _split(head: bytes) -> tuple[bytes, Fields]:
    line, *rest = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if len(rest) > MOST_FIELDS:
        raise Malformed("there are too many headers")
    fields = [_FIELD.fullmatch(each) for each in rest]
    parsed = [(each[1], each[2].rstrip(b" \t")) for each in fields if each]
    if len(parsed) < len(fields):
        raise Malformed("a header is invalid")
    return line, parsed


def _body(fields: Fields) -> Body | None:
    """Return the length that the fields state; None if they state none."""
    codings, lengths = _values(fields, b"transfer-encoding"), _values(fields, b"content-length")
    if codings:
        if lengths or [each.lower() for each in codings] != [b"chunked"]:
            raise Malformed("the length of the body is ambiguous")
        return Body(None)
    if not lengths:
        return None
    if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
        raise Malformed("the length of the body is ambiguous")
    return Body(int(lengths[0]))


def chunk_size(line: bytes) -> int:
    """Return the size of a chunk from its first line; extensions are ignored.

    Raises:
        Malformed: it is invalid.
    """
    size, mark, extension = line.removesuffix(b"\r\n").partition(b";")
    if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size) or (mark and re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", extension)):
        raise Malformed("a chunk is invalid")
    return int(size, 16)


def _values(fields: Fields, name: bytes) -> list[bytes]:
    return [value for field, value in fields if field.lower() == name]


def _tokens(fields: Iterable[tuple[bytes, bytes]], name: bytes) -> set[bytes]:
    return {token.strip().lower() for value in _values(list(fields), name) for token in value.split(b",")}
