"""A small HTTP server with bounds, for probes, metrics and admission.

It is aiohttp's low-level server: one handler for all paths, no router. Added is what aiohttp leaves open: a
client that connects and never completes a request header is cut off, and there is a limit of connections, so
that nobody holds this process's memory or file descriptors at will.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web
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
            raise OSError(
                error.errno, f"cannot listen on {host}:{self._port} for {self.name}: {error.strerror or error}"
            ) from error

    async def start(self) -> None:
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        server = _BoundedServer(
            self._handler,
            max_connections=self._max_connections,
            header_timeout=self._header_timeout,
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
    """Counts connections, and closes those that send no complete request header in time."""

    def __init__(
        self, handler: Handler, *, max_connections: int, header_timeout: float, keepalive_timeout: float
    ) -> None:
        super().__init__(self._serve, keepalive_timeout=keepalive_timeout, lingering_time=2.0, access_log=None)
        self._serve_request = handler
        self._max_connections = max_connections
        self._header_timeout = header_timeout
        self._awaiting_header: dict[RequestHandler, asyncio.TimerHandle] = {}

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        timer = self._awaiting_header.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        return await self._serve_request(request)

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
