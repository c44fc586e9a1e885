"""A client of HTTP/2 with one connection and any number of streams, as those of Node.js and Go have."""

import contextlib
import gzip
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from webhooks.front_proxy.rules.hpack import Decoder, encode

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1
_INITIAL_WINDOW_SIZE = 4
_NO_PUSH = bytes.fromhex("000200000000")
_SECONDS = 60.0
_PIECE = 16_384


class ConnectionEnded(Exception):
    """The server closed the connection, or the stream."""


@dataclass
class Answer:
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    ended: bool = False

    @property
    def status(self) -> int:
        return int(self.headers[":status"])

    @property
    def json(self) -> Any:
        is_compressed = self.headers.get("content-encoding") == "gzip"
        return orjson.loads(gzip.decompress(self.body) if is_compressed else self.body)


class Http2:
    """Args: pair: files of a client certificate and its key."""

    def __init__(self, url: str, ca: str, *, pair: tuple[str, str] | None = None) -> None:
        self._url = urlsplit(url)
        context = ssl.create_default_context(cadata=ca)
        context.set_alpn_protocols(["h2"])
        if pair is not None:
            context.load_cert_chain(*pair)
        plain = socket.create_connection((self._url.hostname or "", self._url.port or 443), timeout=_SECONDS)
        self._socket = context.wrap_socket(plain, server_hostname=self._url.hostname)
        assert self._socket.selected_alpn_protocol() == "h2"
        self._received = self._socket.makefile("rb")
        self._decoder = Decoder()
        self._next = 1
        self._answers: dict[int, Answer] = {}
        self._initial = 65_535
        self._windows = {0: self._initial}
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(_SETTINGS, 0, 0, _NO_PUSH))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._received.close()
        self._socket.close()

    def send(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def open(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> int:
        """Begin a stream with a request; its number."""
        number, self._next = self._next, self._next + 2
        self._answers[number] = Answer()
        self._windows[number] = self._initial
        pseudo = {":method": method, ":scheme": "https", ":authority": self._url.netloc, ":path": path}
        fields = [(name.encode(), value.encode()) for name, value in (pseudo | dict(headers or {})).items()]
        ends = 0 if body else _END_STREAM
        self.send(frame(_HEADERS, _END_HEADERS | ends, number, encode(fields)))
        for at in range(0, len(body), _PIECE):
            piece = body[at : at + _PIECE]
            while min(self._windows[0], self._windows[number]) < len(piece):
                self._receive()
            for each in (0, number):
                self._windows[each] -= len(piece)
            self.send(frame(_DATA, 0 if at + _PIECE < len(body) else _END_STREAM, number, piece))
        return number

    def answer(self, number: int) -> Answer:
        """The whole answer. Raises ConnectionEnded."""
        while not self._answers[number].ended:
            self._receive()
        return self._answers.pop(number)

    def until(self, number: int, text: bytes) -> Answer:
        """What has been received of a stream when this text is part of it. Raises ConnectionEnded."""
        while text not in self._answers[number].body:
            self._receive()
        return self._answers[number]

    def request(self, method: str, path: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        return self.answer(self.open(method, path, headers=headers, body=body))

    def until_closed(self) -> None:
        """Return when the server has closed the connection."""
        with contextlib.suppress(ConnectionEnded):
            while True:
                self._receive()

    def _receive(self) -> None:
        head = self._exactly(9)
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:])
        content = self._exactly(int.from_bytes(head[:3]))
        if kind == _SETTINGS and not flags & _ACK:
            self._set(content)
            self.send(frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self.send(frame(_PING, _ACK, 0, content))
        elif kind == _WINDOW_UPDATE and number in self._windows:
            self._windows[number] += int.from_bytes(content)
        elif kind == _RST_STREAM and number in self._answers:
            raise ConnectionEnded(f"stream {number}: error {int.from_bytes(content)}")
        if (answer := self._answers.get(number)) is None:
            return
        if kind == _HEADERS:
            assert flags & _END_HEADERS
            answer.headers |= {name.decode(): value.decode() for name, value in self._decoder.decode(content)}
        elif kind == _DATA:
            answer.body += content
            if content:
                more = len(content).to_bytes(4)
                self.send(frame(_WINDOW_UPDATE, 0, 0, more) + frame(_WINDOW_UPDATE, 0, number, more))
        answer.ended = answer.ended or (kind in {_HEADERS, _DATA} and bool(flags & _END_STREAM))

    def _set(self, settings: bytes) -> None:
        for at in range(0, len(settings), 6):
            if int.from_bytes(settings[at : at + 2]) == _INITIAL_WINDOW_SIZE:
                initial = int.from_bytes(settings[at + 2 : at + 6])
                for number in self._windows.keys() - {0}:
                    self._windows[number] += initial - self._initial
                self._initial = initial

    def _exactly(self, size: int) -> bytes:
        try:
            content = self._received.read(size)
        except ConnectionError as error:
            raise ConnectionEnded(str(error)) from error
        if len(content) < size:
            raise ConnectionEnded("closed")
        return content


def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + content
