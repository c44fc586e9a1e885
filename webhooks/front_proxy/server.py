"""The server: accepts connections, identifies their clients, and relays their requests.

Connections are bounded in number: beyond the maximum, a new one takes the place of the one that has been idle for the
longest time, of the address with the most connections. A connection takes at most a few buffers of 64 KiB, since each
side is read only as fast as the other one receives.
"""

import asyncio
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial

from process.listener import Listener
from process.logging import get_logger
from process.open_files import most_connections
from process.server import listen
from webhooks.front_proxy import http1, http2
from webhooks.front_proxy.rules.hpack import Malformed as MalformedBlock
from webhooks.front_proxy.rules.http1 import Malformed
from webhooks.front_proxy.rules.requests import Change, Fields, Headers, Identity, NoIdentity, identity_of
from webhooks.front_proxy.streams import MOST, Stream, TooLong
from webhooks.front_proxy.upstream import Upstream
from webhooks.tls import CertificateError
from webhooks.tokens.front_proxies import FrontProxies, Published

PROTOCOLS = (http2.PROTOCOL, http1.PROTOCOL)
_MAX_CONNECTIONS = 256
_LOG_SECONDS = 60.0


class FrontProxy:
    """A component in the sense of `process.runner`.

    Args:
        tls: contexts with certificates; client certificates are verified, if `upstream` has one of a front proxy.
        proxies: published settings of the API server.
        linger: seconds that `stop` waits for requests in flight; watches never end by themselves.
        now: time of the garden.
    """

    name = "front proxy"

    def __init__(
        self,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext,
        proxies: FrontProxies,
        upstream: Upstream,
        linger: float,
        now: Callable[[], datetime],
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        self._proxies, self._upstream, self._linger, self._now = proxies, upstream, linger, now
        # Each has another one to the API server.
        self._most = most_connections(2 * _MAX_CONNECTIONS) // 2
        self._connections: dict[asyncio.Task[None], Stream] = {}
        self._socket: socket.socket | None = None
        self._listener: Listener | None = None
        self._turns = http2.Turns()
        self._logged_at: dict[str, float] = {}
        self._log = get_logger("front-proxy")

    @property
    def address(self) -> tuple[str, int]:
        """Address of the socket, or the requested one before `bind`; the empty host stands for all addresses."""
        if self._socket is None:
            return self._host, self._port
        host, port = self._socket.getsockname()[:2]
        return ("" if host in {"::", "0.0.0.0"} else host), int(port)

    @property
    def serving(self) -> bool:
        """Whether it has started, and not begun to stop."""
        return self._listener is not None

    def bind(self) -> None:
        """Bind the address, so that a start fails early.

        Raises:
            OSError: with a message that names server and address.
        """
        self._socket = listen(self.name, self._host, self._port)

    async def start(self) -> None:
        """Accept connections.

        Raises:
            CertificateError: the certificate of a front proxy is unusable.
        """
        if self._socket is None:
            self.bind()
        assert self._socket is not None
        self._upstream.check()
        self._listener = Listener(self._socket, self._new_protocol, self._tls, make_room=self._make_room)

    async def wait(self) -> None:
        """Return at once: a server has no work of its own that could fail."""

    async def stop(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()
            if self._connections:
                await asyncio.wait(self._connections, timeout=self._linger)
            connections = list(self._connections)
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
            await listener.give_up()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _new_protocol(self) -> asyncio.Protocol:
        loop = asyncio.get_running_loop()
        return _Protocol(asyncio.StreamReader(limit=MOST, loop=loop), self._accepted, loop=loop)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> "asyncio.Task[None] | None":
        client = Stream(reader, writer)
        if len(self._open()) >= self._most and not self._make_room(client.peer):
            writer.transport.abort()
            self._warn("There are too many connections; closed a new one", client=client.peer)
            return None
        task = asyncio.get_running_loop().create_task(self._serve(client))
        self._connections[task] = client
        task.add_done_callback(self._connections.pop)
        return task

    def _open(self) -> list[Stream]:
        return [each for each in self._connections.values() if not each.writer.is_closing()]

    def _make_room(self, newcomer: str = "") -> bool:
        """Close a connection of the address that has the most; False if that would not make their shares fairer.

        Args:
            newcomer: address of a new connection.
        """
        connections = self._open()
        shares = Counter(each.peer for each in connections)
        largest = max(shares, key=shares.__getitem__, default="")
        if shares[largest] <= shares[newcomer] + 1:
            return False
        idlest = min((each for each in connections if each.peer == largest), key=lambda each: each.used)
        idlest.writer.transport.abort()
        self._warn("There are too many connections; closed one of the address with the most", client=largest)
        return True

    async def _serve(self, client: Stream) -> None:
        try:
            await self._relay(client)
        except (ConnectionError, Malformed, MalformedBlock, TooLong):
            pass  # the client, or the API server, has left or broken the protocol
        except NoIdentity as error:
            self._warn("Rejected a client certificate", error=str(error))
        except (OSError, CertificateError) as error:
            self._warn("Cannot reach the API server of the garden", error=str(error))
        except Exception as error:  # noqa: BLE001 - one connection must not end the process
            self._log.error("Cannot relay a connection", error=error)
        finally:
            client.close()

    async def _relay(self, client: Stream) -> None:
        published = self._proxies.published
        identity = self._identity(client.writer, published)
        change = Change(headers=headers_of(published), identity=identity, address=client.peer)

        def demand_current() -> None:
            replaced = self._proxies.published.users != published.users
            if identity is not None and (replaced or identity.until <= self._now()):
                raise _Outdated

        def head(method: str, target: str, fields: Fields) -> tuple[str, Fields]:
            demand_current()
            return change.head(method, target, fields)

        def block(fields: Fields) -> Fields:
            demand_current()
            return change.block(fields)

        dial = partial(self._upstream.dial, trusted=identity is not None)
        if client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == http2.PROTOCOL:
            await http2.relay(client, partial(dial, http2.PROTOCOL), changed=block, turns=self._turns)
        else:
            await http1.relay(client, partial(dial, http1.PROTOCOL), changed=head)

    def _identity(self, writer: asyncio.StreamWriter, published: Published) -> Identity | None:
        """Return the user of a verified client certificate; None without one.

        Raises:
            NoIdentity: it names no user that headers can express.
        """
        shown = writer.get_extra_info("peercert")
        if not shown:
            return None
        if not published.user:
            raise NoIdentity(f"the API server publishes no headers in {self._proxies}")
        return identity_of(shown)

    def _warn(self, text: str, **details: str) -> None:
        now = time.monotonic()
        if now - self._logged_at.get(text, float("-inf")) >= _LOG_SECONDS:
            self._logged_at[text] = now
            self._log.warning(text, **details)


class _Outdated(ConnectionError):
    """The certificate of the client has expired, or its CA may have been replaced: it has to connect again."""


class _Protocol(asyncio.StreamReaderProtocol):
    """Ends the relay of a connection that is lost, also while it waits for the API server."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        accepted: "Callable[[asyncio.StreamReader, asyncio.StreamWriter], asyncio.Task[None] | None]",
        *,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(reader, self._begin, loop=loop)
        self._accepted = accepted
        self._relay: asyncio.Task[None] | None = None

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._relay = self._accepted(reader, writer)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._relay is not None:
            self._relay.cancel()


def headers_of(published: Published) -> Headers:
    names = {name.lower().encode() for name in (*published.user, *published.groups, *published.uid)}
    return Headers(
        user=next(iter(published.user), ""),
        groups=next(iter(published.groups), ""),
        untrusted=frozenset(names),
        prefixes=tuple(prefix.lower().encode() for prefix in published.extra),
    )
