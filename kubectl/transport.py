"""HTTP to an API server for a command, which makes few requests and ends: the standard library's client on threads.

Importing aiohttp, with metrics and traces, takes more CPU than all else of `kubectl mr get`. Here a request, and each
further piece of a large answer, waits in a thread of its own. These threads are daemons: one that waits for an API
server that does not answer is left behind, so that Ctrl-C and deadlines end a command at once.
"""

import asyncio
import contextlib
import functools
import http.client
import select
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from multidict import CIMultiDict, MultiMapping

from kube import errors
from kube.runtime.client import Timeout
from kube.runtime.connection import Connection, Rotation
from kube.runtime.kubeconfig import ConfigurationError

R = TypeVar("R")

_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 30.0
_PIECE = 1 << 20
"""Size of the pieces in which an answer is read, in bytes, unless it lasts."""
_FAILURES = (http.client.HTTPException, OSError, UnicodeError)


class PlainTransport:
    """A `kube.runtime.client.RoundTripper`. Connections are kept for a while, and reused."""

    def __init__(self, connection: Connection) -> None:
        self._rotation = Rotation(connection)
        self._idle: list[_Channel] = []
        self.host = urlsplit(connection.server).netloc

    @property
    def connection(self) -> Connection:
        return self._rotation.current()

    async def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @contextlib.asynccontextmanager
    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: MultiMapping[str],
        params: Mapping[str, str] | None,
        body: bytes | None,
        timeout: Timeout,
        lasting: bool = False,
    ) -> AsyncIterator["Answer"]:
        """See `kube.runtime.client.RoundTripper`."""
        connection = self.connection
        target = f"{urlsplit(connection.server).path}{path}{_query(params)}"
        try:
            async with asyncio.timeout(timeout.total):
                sent = CIMultiDict(headers)
                if authorization := await connection.credentials.authorization():
                    sent["Authorization"] = authorization
                async with self._channel(connection) as channel:
                    yield await channel.answer(_Request(method, target, sent, body, timeout.silence, lasting))
        except (ConfigurationError, *_FAILURES) as error:
            text = f'{method} "{connection.server}{path}": {str(error) or type(error).__name__}'
            raise (errors.TimedOut if isinstance(error, TimeoutError) else errors.Unreachable)(text) from error

    @contextlib.asynccontextmanager
    async def _channel(self, connection: Connection) -> AsyncIterator["_Channel"]:
        channel = _Channel(connection)
        while self._idle:
            kept = self._idle.pop()
            if kept.serves(connection):
                channel = kept
                break
            kept.close()
        try:
            yield channel
        finally:
            if channel.is_done:
                self._idle.append(channel)
            else:
                channel.close()


def _query(params: Mapping[str, str] | None) -> str:
    return f"?{urlencode(params, quote_via=quote)}" if params else ""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    target: str
    headers: MultiMapping[str]
    body: bytes | None
    silence: float | None
    lasting: bool


class _Channel:
    """Connection for one request at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        self._used_at = 0.0
        self._lock = threading.Lock()
        self._has_thread = False
        self._is_given_up = False
        """Whether no caller waits any more; then the last of caller and thread closes the connection."""

    @property
    def is_done(self) -> bool:
        """Whether its last answer was read to the end, so that it can be reused."""
        is_read = self._response is not None and self._response.isclosed()
        return is_read and not self._has_thread and self._http is not None and self._http.sock is not None

    def serves(self, connection: Connection) -> bool:
        """Whether it has this address and credentials, and is still open; readable data on an idle one is its end."""
        if connection is not self._connection or time.monotonic() - self._used_at > _IDLE_SECONDS:
            return False
        return self._socket is not None and not select.select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        """Close at once; while a thread uses its file descriptor, as soon as that has ended."""
        if not self._has_thread:
            for each in (self._response, self._http, self._socket):
                if each is not None:
                    each.close()

    async def answer(self, request: _Request) -> "Answer":
        response, piece = await self._wait(lambda: self._send(request))
        headers = CIMultiDict(response.getheaders())
        return Answer(response.status, headers, Content(self, response, piece, request.lasting))

    async def more(self, response: http.client.HTTPResponse, *, lasting: bool) -> bytes:
        return await self._wait(lambda: self._read(response, lasting=lasting))

    def _send(self, request: _Request) -> tuple[http.client.HTTPResponse, bytes]:
        self._response = None
        sender = self._http or self._connect()
        sender.sock.settimeout(request.silence)
        sender.putrequest(request.method, request.target, skip_accept_encoding=True)
        for name, value in request.headers.items():
            sender.putheader(name, value.encode())
        if request.body is not None:
            sender.putheader("Content-Length", str(len(request.body)))
        sender.endheaders(request.body)
        self._response = response = sender.getresponse()
        return response, b"" if request.lasting else self._read(response, lasting=False)

    def _connect(self) -> http.client.HTTPConnection:
        server = urlsplit(self._connection.server)
        host = server.hostname or ""
        port = server.port or (http.client.HTTPS_PORT if server.scheme == "https" else http.client.HTTP_PORT)
        self._http = sender = http.client.HTTPConnection(host, port, timeout=_CONNECT_SECONDS)
        sender.connect()
        if tls := self._connection.tls:
            sender.sock = tls.wrap_socket(sender.sock, server_hostname=self._connection.tls_server_name or host)
        self._socket = sender.sock
        return sender

    def _read(self, response: http.client.HTTPResponse, *, lasting: bool) -> bytes:
        # Lasting answers have no length; return the part that has arrived.
        piece = response.read1(_PIECE) if lasting and response.length is None else response.read(_PIECE)
        if not piece and response.length:
            raise http.client.IncompleteRead(piece, response.length)
        self._used_at = time.monotonic()
        return piece

    async def _wait(self, work: Callable[[], R]) -> R:
        """Result of work in a thread of its own. If the wait is cancelled, the connection is cut."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[R] = loop.create_future()

        def carry_out() -> None:
            try:
                deliver = functools.partial(result.set_result, work())
            except BaseException as error:  # noqa: BLE001 - raised at the waiting caller
                deliver = functools.partial(result.set_exception, error)
            with self._lock:
                self._has_thread = False
                if self._is_given_up:
                    self.close()
            with contextlib.suppress(RuntimeError):  # the loop is closed: no caller waits any more
                loop.call_soon_threadsafe(lambda: None if result.done() else deliver())

        self._has_thread = True
        threading.Thread(target=carry_out, daemon=True).start()
        try:
            return await result
        except asyncio.CancelledError:
            with self._lock:
                self._is_given_up = True
                if not self._has_thread:
                    self.close()
                elif self._socket is not None:
                    # Not the shutdown of TLS, which belongs to the thread.
                    with contextlib.suppress(OSError):
                        socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            raise


@dataclass(frozen=True, slots=True)
class Content:
    _channel: _Channel
    _response: http.client.HTTPResponse
    _first: bytes
    _lasting: bool

    async def iter_any(self) -> AsyncIterator[bytes]:
        if self._first:
            yield self._first
        while not self._response.isclosed():
            if piece := await self._channel.more(self._response, lasting=self._lasting):
                yield piece


@dataclass(frozen=True, slots=True)
class Answer:
    """A `kube.runtime.answers.Response`."""

    status: int
    headers: MultiMapping[str]
    content: Content
