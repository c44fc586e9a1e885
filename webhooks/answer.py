"""An HTTP answer that is written in one piece.

aiohttp's own response is made for any status, header and body; to prepare it takes longer than to decide about most
objects. Ours are all alike: 200, and JSON whose length is known.
"""

import time
from email.utils import formatdate

from aiohttp import ClientConnectionResetError, web

_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: %s\r\nContent-Length: "
_CLOSE = b"\r\nConnection: close\r\n\r\n"
_KEEP = b"\r\n\r\n"


class _Head:
    """The begin of all answers of a second."""

    def __init__(self) -> None:
        self._second = -1
        self._bytes = b""

    def now(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._bytes = (_HEAD % formatdate(second, usegmt=True)).encode()
        return self._bytes


_head = _Head()


class JsonAnswer(web.StreamResponse):
    """For clients of HTTP/1.1, which API servers are."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._bytes = body
        self._request: web.BaseRequest | None = None
        self._stays: bool | None = None
        self._is_written = False

    @property
    def keep_alive(self) -> bool | None:
        return self._stays

    def force_close(self) -> None:
        self._stays = False

    async def prepare(self, request: web.BaseRequest) -> None:
        self._request = request
        if self._stays is None:
            self._stays = request.keep_alive

    async def write_eof(self, data: bytes = b"") -> None:
        if self._is_written:
            return
        assert self._request is not None
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError("the client has gone")
        body = self._bytes
        length = str(len(body)).encode()
        transport.write(b"".join((_head.now(), length, _KEEP if self._stays else _CLOSE, body, data)))
        self._is_written = True
        # A client that asks on and on, and never reads, has to wait. `writer` is not documented, but no private name.
        await self._request.writer.drain()
