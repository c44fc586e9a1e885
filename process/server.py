"""A small HTTP server with bounds, for probes, metrics and admission.

It is aiohttp's low-level server: one handler for all paths, no router. Added is what aiohttp leaves open: a
client that connects and never completes a request header is cut off, and there is a limit of connections, so
that nobody holds this process's memory or file descriptors at will.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


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
        drain_timeout: seconds that `stop` waits for requests in flight.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        max_connections: int = 256,
        idle_timeout: float = 90.0,
        header_timeout: float = 32.0,
        request_timeout: float = 70.0,
        max_body: int = 1024**2,
        drain_timeout: float = 1.0,
    ) -> None:
        self.name = name
        self._handler = handler
        self._host = host.removeprefix("[").removesuffix("]")
        self._port = port
        self._tls = tls
        self._max_connections = max_connections
        self._idle_timeout = idle_timeout
        self._header_timeout = header_timeout
        self._request_timeout = request_timeout
        self._max_body = max_body
        self._drain_timeout = drain_timeout
        self._socket: socket.socket | None = None
        self._runner: web.ServerRunner | None = None

    @property
    def port(self) -> int:
        """The port that is listened on, or the one asked for before `bind`."""
        return int(self._socket.getsockname()[1]) if self._socket else self._port

    @property
    def started(self) -> bool:
        return self._runner is not None

    def bind(self) -> None:
        """Takes the address, so that a start fails early; no connection is served before `start`.

        Raises:
            OSError: with a message that names server and address.
        """
        try:
            self._socket = _listening_socket(self._host, self._port)
        except OSError as error:
            host = f"[{self._host}]" if ":" in self._host else self._host
            reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
            raise OSError(f"cannot listen on {host}:{self._port} for {self.name}: {reason}") from error

    async def start(self) -> None:
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        server = _BoundedServer(
            self._handler,
            max_connections=self._max_connections,
            header_timeout=self._header_timeout,
            request_timeout=self._request_timeout,
            max_body=self._max_body,
            keepalive_timeout=self._idle_timeout,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=self._drain_timeout)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, ssl_context=self._tls).start()

    async def wait(self) -> None:
        """Returns at once: a server has no work of its own that could fail."""

    async def stop(self) -> None:
        """Takes no more connections, waits for requests in flight, closes everything."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _listening_socket(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:  # IPv6 is switched off
                raise
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


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
            request_factory=make_request,
            keepalive_timeout=keepalive_timeout,
            lingering_time=0.5,
            access_log=None,
        )
        self._serve_request = handler
        self._max_connections = max_connections
        self._header_timeout = header_timeout
        self._request_timeout = request_timeout
        self._awaiting_header: dict[RequestHandler, asyncio.TimerHandle] = {}

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        timer = self._awaiting_header.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        try:
            async with asyncio.timeout(self._request_timeout) as limit:
                return await self._serve_request(request)
        except TimeoutError:
            if not limit.expired():
                raise
            response = web.Response(status=503, text="request timed out\n")
            response.force_close()
            return response

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
