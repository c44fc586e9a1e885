"""A small HTTP server with bounds, for probes, metrics and admission.

It is aiohttp's low-level server: one handler for all paths, no router. Added is what aiohttp leaves open: a
client that connects and never completes a request header is cut off, and there is a limit of connections, so
that nobody holds this process's memory or file descriptors at will.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.log import server_logger
from aiohttp.web_protocol import RequestHandler

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_HANDSHAKE_SECONDS = 10.0
_BACKLOG = 1024
_REFUSED_BODY_SECONDS = 2.0
"""For how long the rest of a refused body is still taken: a client that is cut off while sending sees no answer."""


class HttpServer:
    """Serves one handler at one address; a component in the sense of `process.runner`.

    Args:
        name: what is served, for error messages, such as `health probes`.
        host: an address without brackets, a host name, or empty for all addresses, IPv6 and IPv4.
        port: 0 takes a free one, see `port` after `bind`.
        listening: a socket that listens already, in place of host and port.
        tls: serves HTTPS with this context.
        idle_timeout: seconds after which an idle kept-alive connection is closed.
        header_timeout: seconds within which a new connection must have sent a whole request header.
        request_timeout: seconds for receiving a request's body and answering it.
        max_body: bytes of a body that `request.read()` accepts before it raises HTTPRequestEntityTooLarge.
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
        listening: socket.socket | None = None,
        tls: ssl.SSLContext | None = None,
        max_connections: int = 256,
        idle_timeout: float = 90.0,
        header_timeout: float = 32.0,
        request_timeout: float = 70.0,
        max_body: int = 1024**2,
        linger: float = 0.0,
        drain_timeout: float = 1.0,
    ) -> None:
        self.name = name
        self._handler = handler
        self._host = host
        self._port = port
        self._tls = tls
        self._max_connections = max_connections
        self._idle_timeout = idle_timeout
        self._header_timeout = header_timeout
        self._request_timeout = request_timeout
        self._max_body = max_body
        self._linger = linger
        self._drain_timeout = drain_timeout
        self._socket = listening
        self._server: _BoundedServer | None = None
        self._listener: asyncio.Server | None = None

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

        Raises:
            OSError: with a message that names server and address.
        """
        self._socket = listen(self.name, self._host, self._port)

    async def start(self) -> None:
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._server = _BoundedServer(
            self._handler,
            max_connections=self._max_connections,
            header_timeout=self._header_timeout,
            request_timeout=self._request_timeout,
            max_body=self._max_body,
            keepalive_timeout=self._idle_timeout,
        )
        self._listener = await asyncio.get_running_loop().create_server(
            self._server,
            sock=self._socket,
            backlog=_BACKLOG,
            ssl=self._tls,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if self._tls else None,
        )

    async def wait(self) -> None:
        """Returns at once: a server has no work of its own that could fail."""

    async def stop(self) -> None:
        """Sends clients away, takes no more connections, waits for requests in flight, closes everything."""
        server, listener = self._server, self._listener
        if server is not None and listener is not None:
            server.closing = True
            await asyncio.sleep(self._linger)
            listener.close()
            server.pre_shutdown()
            await server.shutdown(self._drain_timeout)
        self._server = self._listener = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def listen(name: str, host: str, port: int) -> socket.socket:
    """A socket that listens at an address; the arguments are those of `HttpServer`.

    Raises:
        OSError: with a message that names server and address.
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


class _BoundedServer(web.Server):
    """Counts connections, and gives up on those that take too long for a request's header or body."""

    def __init__(
        self,
        handler: Handler,
        *,
        max_connections: int,
        header_timeout: float,
        request_timeout: float,
        max_body: int,
        keepalive_timeout: float,
    ) -> None:
        loop = asyncio.get_running_loop()

        def make_request(
            message: RawRequestMessage,
            payload: StreamReader,
            protocol: RequestHandler,
            writer: AbstractStreamWriter,
            task: "asyncio.Task[None]",
        ) -> web.BaseRequest:
            return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=max_body)

        super().__init__(
            self._serve,
            loop=loop,
            request_factory=make_request,
            keepalive_timeout=keepalive_timeout,
            lingering_time=_REFUSED_BODY_SECONDS,
            access_log=None,
            logger=_DiscreetLogger(server_logger, None),
            # Nobody who asks compresses, and what is compressed has no bound.
            auto_decompress=False,
        )
        self._serve_request = handler
        self._max_connections = max_connections
        self._header_timeout = header_timeout
        self._request_timeout = request_timeout
        self._awaiting_header: dict[RequestHandler, asyncio.TimerHandle] = {}
        self._late: set[asyncio.Task[Any]] = set()
        """Tasks of requests that have taken too long."""
        self.closing = False

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        timer = self._awaiting_header.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        # What asyncio.timeout does, at a quarter of its price; this is done for every request.
        task = asyncio.current_task()
        assert task is not None
        limit = self._loop.call_later(self._request_timeout, self._cut_off, task)
        try:
            response = await self._serve_request(request)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            response = web.Response(status=503, text="request timed out\n")
            response.force_close()
        except ConnectionError:
            # The client went away before it had sent all: there is nobody to answer, and nothing to complain of.
            response = web.Response(status=400)
            response.force_close()
        finally:
            limit.cancel()
            self._late.discard(task)
        if self.closing:
            response.force_close()
        return response

    def _cut_off(self, task: "asyncio.Task[Any]") -> None:
        self._late.add(task)
        task.cancel()

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > self._max_connections:
            transport.abort()
            return
        timer = asyncio.get_running_loop().call_later(self._header_timeout, handler.force_close)
        self._awaiting_header[handler] = timer

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        timer = self._awaiting_header.pop(handler, None)
        if timer is not None:
            timer.cancel()
        super().connection_lost(handler, exc)
