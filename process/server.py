"""A small HTTP server with bounds, for probes, metrics and admission.

It is aiohttp's low-level server: one handler for all paths, no router. Added is what aiohttp leaves open: a client that
never completes a request, or does not take its answer, is cut off; connections, and the bytes that all of them together
have sent, are limited (`process.connections`), so that nobody holds this process's memory or file descriptors at will.

Each connection is a protocol of ours around the one that aiohttp makes for it: it sees what comes before aiohttp does,
and writes the answer itself, so that the time limit of a request ends only when its answer has been taken.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, cast

from aiohttp import StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError

from process.connections import Connections
from process.listener import Listener
from process.logging import get_logger

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

HEADER_SECONDS = 32.0
_RECEIVE_BUFFER = 64 << 10
"""Bytes of a connection that the system keeps, and that are decrypted at a time: there are many connections."""
_CUT_OFF_LOG_SECONDS = 60.0
_REFUSED_BODY_SECONDS = 2.0
"""For how long the rest of a refused body is still taken: a client that is cut off while sending sees no answer."""
_MOST_AROUND_BODY = 16 << 10
"""Bytes of a request beside its body. What is more belongs to further requests, and its connection is closed."""


class HttpServer:
    """Serves one handler at one address; a component in the sense of `process.runner`.

    Args:
        name: what is served, for error messages, such as `health probes`.
        host: an address without brackets, a host name, or empty for all addresses, IPv6 and IPv4.
        port: 0 takes a free one, see `port` after `bind`.
        tls: serves HTTPS with this context.
        idle_timeout: seconds after which an idle kept-alive connection is closed.
        header_timeout: seconds within which a new connection must have sent a whole request header.
        request_timeout: seconds for receiving a request's body and answering it.
        max_body: bytes of a body that `request.read()` accepts before it raises HTTPRequestEntityTooLarge.
        max_buffered: bytes that all clients together may have sent and not got answered.
        linger: seconds that `stop` goes on taking connections, while every answer asks its client to close; until
            then everybody who chooses between replicas knows that this one goes.
        drain_timeout: seconds that `stop` then waits for requests in flight.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        host: str = "",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        max_connections: int = 256,
        idle_timeout: float = 90.0,
        header_timeout: float = HEADER_SECONDS,
        request_timeout: float = 70.0,
        max_body: int = 1024**2,
        max_buffered: int = 4 * 1024**2,
        linger: float = 0.0,
        drain_timeout: float = 1.0,
    ) -> None:
        self.name = name
        self._host = host
        self._port = port
        self._tls = tls
        self._new_server = partial(
            _BoundedServer,
            name,
            handler,
            max_connections=max_connections,
            header_timeout=header_timeout,
            request_timeout=request_timeout,
            max_body=max_body,
            max_buffered=max_buffered,
            keepalive_timeout=idle_timeout,
        )
        self._linger = linger
        self._drain_timeout = drain_timeout
        self._socket: socket.socket | None = None
        self._server: _BoundedServer | None = None
        self._listener: Listener | None = None

    @property
    def address(self) -> tuple[str, int]:
        """What is listened on, or what was asked for before `bind`; all addresses are the empty host."""
        if self._socket is None:
            return self._host, self._port
        host, port = self._socket.getsockname()[:2]
        return ("" if host in {"::", "0.0.0.0"} else host), int(port)

    @property
    def port(self) -> int:
        return self.address[1]

    @property
    def serving(self) -> bool:
        """Whether it has started, and not begun to stop."""
        return self._server is not None and not self._server.closing

    def bind(self) -> None:
        """Takes the address, so that a start fails early; no connection is served before `start`.

        Raises: OSError: with a message that names server and address.
        """
        self._socket = listen(self.name, self._host, self._port)

    async def start(self) -> None:
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._server = self._new_server()
        self._listener = Listener(self._socket, self._server, self._tls)

    async def wait(self) -> None:
        """Returns at once: a server has no work of its own that could fail."""

    async def stop(self) -> None:
        """Sends clients away, takes no more connections, waits for requests in flight, closes everything."""
        server, listener = self._server, self._listener
        if server is not None and listener is not None:
            server.closing = True
            await asyncio.sleep(self._linger)
            await listener.close()
            server.http.pre_shutdown()
            await server.http.shutdown(self._drain_timeout)
            await listener.give_up()
        self._server = self._listener = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def listen(name: str, host: str, port: int) -> socket.socket:
    """A socket that listens at an address; the arguments are those of `HttpServer`.

    Raises: OSError: with a message that names server and address.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        return _listening_socket(host, port)
    except OSError as error:
        shown = f"[{host}]" if ":" in host else host
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise OSError(f"cannot listen on {shown}:{port} for {name}: {reason}") from error


def _listening_socket(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:  # IPv6 is switched off
                raise
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


class _DiscreetLogger(logging.LoggerAdapter[logging.Logger]):
    """For aiohttp, which quotes what is no HTTP in errors: there may be a credential in it, and anybody may send it."""

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        error = kwargs.get("exc_info")
        if isinstance(error, HttpProcessingError):
            super().log(logging.DEBUG, f"{msg}: it is not HTTP as it should be (%s)", *args, type(error).__name__)
        else:
            super().log(level, msg, *args, **kwargs)


class _Request(web.BaseRequest):
    async def read(self) -> bytes:
        content, most = self.content, self.client_max_size
        if content.is_eof():
            # Most bodies have come with their header: waiting for a stream takes longer than parsing them.
            body = content.read_nowait()
            if len(body) > most:
                raise web.HTTPRequestEntityTooLarge(most, len(body))
            return body
        parts: list[bytes] = []
        size = 0
        try:
            while part := await content.readany():
                size += len(part)
                if size > most:
                    raise web.HTTPRequestEntityTooLarge(most, size)
                parts.append(part)
            return b"".join(parts)
        finally:
            # The error of a connection that breaks off remembers this frame, and with it all that had come.
            parts.clear()


class _Connection(asyncio.Protocol):
    """A connection: hands everything to aiohttp's protocol, and notes what it holds and what it is doing."""

    __slots__ = ("_http", "_server", "content", "held", "late", "limit", "since", "transport")

    def __init__(self, server: "_BoundedServer") -> None:
        self._server = server
        self._http = server.http()
        self.held = 0
        self.since = time.monotonic()
        self.limit: asyncio.TimerHandle | None = None
        """Ends the wait for the first header, or the request that is being answered."""
        self.late = False
        """Whether that request took too long."""
        self.content: StreamReader | None = None
        """The body of that request."""
        self.transport: asyncio.Transport | None = None

    @property
    def complete(self) -> bool:
        return self.content is not None and self.content.is_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._http.connection_made(transport)
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        self._http.data_received(data)
        everyone, size = self._server.all, len(data)
        if not self.held:
            self.since = time.monotonic()
        self.held += size
        everyone.held += size
        if everyone.held > everyone.most_held:
            self._server.close_for(everyone.too_much(self))

    def eof_received(self) -> None:
        self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.all.closed(self)
        self.end_limit()
        self._http.connection_lost(exc)

    def cut_off(self, task: "asyncio.Task[Any]") -> None:
        """Ends the request that is being answered in this task."""
        self.late = True
        task.cancel()

    def end_limit(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None


class _BoundedServer:
    """Bounds connections and what they hold, and gives up on those that take too long for a request or its answer."""

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        max_connections: int,
        header_timeout: float,
        request_timeout: float,
        max_body: int,
        max_buffered: int,
        keepalive_timeout: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.http = web.Server(
            self._serve,
            request_factory=partial(_Request, loop=self._loop, client_max_size=max_body),
            keepalive_timeout=keepalive_timeout,
            lingering_time=_REFUSED_BODY_SECONDS,
            access_log=None,
            logger=_DiscreetLogger(logging.getLogger("aiohttp.server"), None),
            # Nobody who asks compresses, and what is compressed has no bound.
            auto_decompress=False,
        )
        """Makes aiohttp's protocol of a connection."""
        self._name = name
        self._handler = handler
        self._header_timeout = header_timeout
        self._request_timeout = request_timeout
        self.all: Connections[_Connection] = Connections(most=max_connections, most_held=max_buffered)
        self._told_at = float("-inf")
        self._log = get_logger("server")
        self.closing = False

    def __call__(self) -> _Connection:
        return _Connection(self)

    def opened(self, connection: _Connection) -> None:
        assert connection.transport is not None
        connection.limit = self._loop.call_later(self._header_timeout, connection.transport.close)
        if (superfluous := self.all.opened(connection)) is not None:
            self.close_for([superfluous])

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.transport and request.transport.get_protocol()
        if not isinstance(connection, _Connection):
            return _last(400)  # it is lost; TLS forgets its protocol a moment before it says so
        connection.end_limit()
        content = connection.content = request.content
        # What asyncio.timeout does, at a quarter of its price; this is done for every request.
        task = asyncio.current_task()
        assert task is not None
        connection.late = False
        connection.limit = self._loop.call_later(self._request_timeout, connection.cut_off, task)
        try:
            try:
                response = await self._handler(request)
            except asyncio.CancelledError:
                if not connection.late:
                    raise
                task.uncancel()
                response = _last(503, "request timed out\n")
            except ConnectionError:
                # The client went away before it had sent all: there is nobody to answer, and nothing to complain of.
                response = _last(400)
            if self.closing or connection.held - content.total_bytes > _MOST_AROUND_BODY:
                response.force_close()
            try:
                # aiohttp would do it, but after this; then it finds that it is done, or fails as it does here.
                await response.prepare(request)
                await response.write_eof()
            except ConnectionError:
                pass
            return response
        finally:
            connection.content = None
            connection.end_limit()
            self.all.answered(connection)

    def close_for(self, others: Iterable[_Connection]) -> None:
        """Closes connections, for others to be served."""
        for connection in others:
            if connection.transport is not None:
                connection.transport.abort()
        now = self._loop.time()
        if now - self._told_at >= _CUT_OFF_LOG_SECONDS:
            self._told_at = now
            self._log.warning(
                "Too many connections, or too much that was sent: who takes the longest to ask is cut off",
                server=self._name,
            )


def _last(status: int, text: str = "") -> web.Response:
    """An answer after which the connection is closed."""
    response = web.Response(status=status, text=text)
    response.force_close()
    return response
