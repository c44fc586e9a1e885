"""A small HTTP server with bounds, for probes, metrics and admission.

It is aiohttp's low-level server: one handler for all paths, no router. It adds limits that aiohttp lacks: a client that
never completes a request, or does not receive its response, is disconnected; connections, and the unanswered bytes of
all of them together, are limited (`process.connection_limits`), so that no client can fill this process's memory or
exhaust its file descriptors (`process.open_files`).

Each connection is a protocol of ours around that of aiohttp: it sees data before aiohttp does, and writes the response
itself, so that the time limit of a request ends only when its response has been received. Only documented parts of
aiohttp are used: `web.Server` as a factory of protocols, its runner, `web.BaseRequest` and its stream. The only
exception is `BaseRequest.writer` (`webhooks.server`): without its `drain`, clients that send requests continuously and
read no response would fill the memory.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from aiohttp import StreamReader, web

from process.connection_limits import ConnectionLimits
from process.listener import Listener
from process.logging import get_logger
from process.open_files import most_connections
from process.runner import StartError

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

HEADER_SECONDS = 32.0
_RECEIVE_BUFFER = 64 << 10
"""Bytes of a connection that the system buffers, and that are decrypted at a time: there are many connections."""
_CUT_OFF_LOG_SECONDS = 60.0
_REFUSED_BODY_SECONDS = 2.0
"""Seconds in which the rest of a refused body is received: a client disconnected while sending sees no response."""
_MOST_AROUND_BODY = 16 << 10
"""Bytes of a request in addition to a body of known length. More may be further requests: the connection is closed."""


class HttpServer:
    """Serves one handler at one address; a component in the sense of `process.runner`.

    Args:
        name: of the service, for error messages, such as `health probes`.
        host: an address without brackets, a host name, or empty for all addresses, IPv6 and IPv4.
        port: 0 takes a free one, see `port` after `bind`.
        tls: serves HTTPS with this context.
        idle_timeout: seconds after which an idle kept-alive connection is closed.
        header_timeout: seconds within which a new connection must have sent a whole request header.
        request_timeout: seconds for receiving a request's body and answering it.
        max_buffered: unanswered bytes that all clients together may have sent.
        linger: seconds that `stop` continues to accept connections, while every response requests its client to close;
            until then all load balancers know that this server stops.
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
        max_buffered: int = 4 * 1024**2,
        linger: float = 0.0,
        drain_timeout: float = 1.0,
    ) -> None:
        self.name = name
        self._handler = handler
        self._host, self._port, self._tls = host, port, tls
        self._idle_timeout, self._header_timeout, self._request_timeout = idle_timeout, header_timeout, request_timeout
        self._linger, self._drain_timeout = linger, drain_timeout
        self._limits: ConnectionLimits[_Connection] = ConnectionLimits(
            most=most_connections(max_connections), most_held=max_buffered
        )
        self._socket: socket.socket | None = None
        self._listener: Listener | None = None
        self._closing = False
        self._logged_at = float("-inf")
        self._log = get_logger("server")

    @property
    def address(self) -> tuple[str, int]:
        """Address of the socket, or the requested one before `bind`; the empty host stands for all addresses."""
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
        return self._listener is not None and not self._closing

    def bind(self) -> None:
        """Bind the address, so that a start fails early; no connection is served before `start`.

        Raises:
            OSError: with a message that names server and address.
        """
        self._socket = listen(self.name, self._host, self._port)

    async def start(self) -> None:
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        new_protocol = web.Server(
            self._serve,
            keepalive_timeout=self._idle_timeout,
            lingering_time=_REFUSED_BODY_SECONDS,
            access_log=None,
            logger=_DiscreetLogger(logging.getLogger("aiohttp.server"), None),
            # API servers do not compress requests, and compressed bodies have no bound.
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(new_protocol, shutdown_timeout=self._drain_timeout)
        await self._runner.setup()
        self._listener = Listener(
            self._socket, lambda: _Connection(self, new_protocol()), self._tls, make_room=self._make_room
        )

    async def wait(self) -> None:
        """Return at once: a server has no work of its own that could fail."""

    async def stop(self) -> None:
        """Send clients away, accept no more connections, wait for requests in flight, close everything."""
        if self._listener is not None:
            self._closing = True
            await asyncio.sleep(self._linger)
            await self._listener.close()
            await self._runner.cleanup()
            await self._listener.give_up()
            self._listener = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def opened(self, connection: "_Connection", transport: asyncio.Transport) -> None:
        """Limit the time for the first header of a new connection; close one beyond the maximum number."""
        connection.limit = asyncio.get_running_loop().call_later(self._header_timeout, transport.close)
        if (superfluous := self._limits.opened(connection)) is not None:
            self._close_for_others([superfluous])

    def received(self, connection: "_Connection", size: int) -> None:
        limits = self._limits
        if not connection.held:
            connection.since = time.monotonic()
        connection.held += size
        limits.held += size
        if limits.held > limits.most_held:
            self._close_for_others(limits.too_much(connection))

    def closed(self, connection: "_Connection") -> None:
        self._limits.closed(connection)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.transport and request.transport.get_protocol()
        if not isinstance(connection, _Connection):
            return _last(400)  # it is lost; TLS drops its protocol a moment before it reports that
        connection.end_limit()
        connection.content = request.content
        # Like asyncio.timeout, at a quarter of its cost; this runs for every request.
        task = asyncio.current_task()
        assert task is not None
        connection.late = False
        connection.limit = asyncio.get_running_loop().call_later(self._request_timeout, connection.cut_off, task)
        try:
            response = await self._response(request, connection, task)
            if self._closing or connection.held - (request.content_length or 0) > _MOST_AROUND_BODY:
                response.force_close()
            try:
                # aiohttp would do it, but after this; then it finds it done, or fails as it does here.
                await response.prepare(request)
                await response.write_eof()
            except ConnectionError:
                pass
            return response
        finally:
            connection.content = None
            connection.end_limit()
            self._limits.answered(connection)

    async def _response(
        self, request: web.BaseRequest, connection: "_Connection", task: "asyncio.Task[Any]"
    ) -> web.StreamResponse:
        try:
            return await self._handler(request)
        except asyncio.CancelledError:
            if not connection.late:
                raise
            task.uncancel()
            return _last(503, "request timed out\n")
        except ConnectionError:
            return _last(400)  # the client disconnected before it had sent all: not an error
        except web.HTTPException:
            raise
        except Exception as error:  # noqa: BLE001 - one request must not end the process, and needs a response
            self._log.error("Cannot answer a request", server=self.name, error=error)
            return _last(500, "internal server error\n")

    def _make_room(self) -> bool:
        longest = self._limits.longest()
        if longest is not None:
            self._close_for_others([longest])
        return longest is not None

    def _close_for_others(self, connections: Iterable["_Connection"]) -> None:
        for connection in connections:
            if connection.transport is not None:
                connection.transport.abort()
        now = time.monotonic()
        if now - self._logged_at >= _CUT_OFF_LOG_SECONDS:
            self._logged_at = now
            self._log.warning(
                "Too many connections, or too much buffered data; closing the connection with the slowest request",
                server=self.name,
            )


class ListenError(StartError, OSError):
    """An address cannot be listened on."""


def listen(name: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; the arguments are those of `HttpServer`.

    Raises:
        ListenError: with a message that names server and address.
    """
    host = host.removeprefix("[").removesuffix("]")
    try:
        return _listening_socket(host, port)
    except OSError as error:
        shown = f"[{host}]" if ":" in host else host
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise ListenError(f"cannot listen on {shown}:{port} for {name}: {reason}") from error


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
    """Logger for aiohttp, whose errors quote invalid HTTP, with possible credentials, from any client.

    Errors of handlers do not reach it.
    """

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if (error := kwargs.pop("exc_info", None)) is None:
            super().log(level, msg, *args, **kwargs)
        else:
            super().log(logging.DEBUG, f"{msg} (%s)", *args, type(error).__name__)


async def read_body(request: web.BaseRequest, *, most: int) -> bytes:
    """Return the body of a request.

    Raises:
        web.HTTPRequestEntityTooLarge: it has more bytes than that.
        web.RequestPayloadError: it is not a valid HTTP body.
        ConnectionError: the client disconnected.
    """
    content = request.content
    if content.is_eof():
        # Most bodies arrive with their header: waiting for a stream takes longer than parsing them.
        body = content.read_nowait()
        if len(body) > most:
            raise web.HTTPRequestEntityTooLarge(most, len(body))
        return body
    parts: list[bytes] = []
    size = 0
    try:
        while True:
            parts.append(await content.readany())
            if not parts[-1]:
                return b"".join(parts)
            size += len(parts[-1])
            if size > most:
                raise web.HTTPRequestEntityTooLarge(most, size)
    finally:
        # The error of a broken connection keeps this frame, and with it all received data.
        parts.clear()


class _Connection(asyncio.Protocol):
    """A connection: passes everything to aiohttp's protocol, and records its unanswered bytes and its state."""

    __slots__ = ("_http", "_server", "content", "held", "late", "limit", "since", "transport")

    def __init__(self, server: HttpServer, http: asyncio.Protocol) -> None:
        self._server = server
        self._http = http
        self.held = 0
        self.since = time.monotonic()
        self.limit: asyncio.TimerHandle | None = None
        """Ends the wait for the first header, or the request that is being answered."""
        self.late = False
        """Whether that request took too long."""
        self.content: StreamReader | None = None
        """Body of that request."""
        self.transport: asyncio.Transport | None = None

    @property
    def complete(self) -> bool:
        return self.content is not None and self.content.is_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._http.connection_made(transport)
        self._server.opened(self, self.transport)

    def data_received(self, data: bytes) -> None:
        self._http.data_received(data)
        self._server.received(self, len(data))

    def eof_received(self) -> None:
        self._http.eof_received()

    def pause_writing(self) -> None:
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self)
        self.end_limit()
        self._http.connection_lost(exc)

    def cut_off(self, task: "asyncio.Task[Any]") -> None:
        """End the request that is being answered in this task."""
        self.late = True
        task.cancel()

    def end_limit(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None


def _last(status: int, text: str = "") -> web.Response:
    """Return a response after which the connection is closed."""
    response = web.Response(status=status, text=text)
    response.force_close()
    return response
