"""Accepts the connections of a server, and gives each its own protocol after its TLS handshake.

Handshakes in progress are bounded in time, and in number: a new one replaces the longest one, so that a quick client is
served however many others send nothing.

If the process has no file descriptor left, a handshake or a connection of this server is closed for the new one. One
descriptor is kept in reserve for a server that has none to close.
"""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable

from process.logging import get_logger
from process.open_files import most_connections

_BACKLOG = 1024
HANDSHAKES = 256
HANDSHAKE_SECONDS = 10.0
_NO_RESOURCES_SECONDS = 1.0
_NO_FILES = frozenset({errno.EMFILE, errno.ENFILE})
_CLOSING_SECONDS = 0.02
"""Seconds until an aborted connection has released its file descriptor."""


class Listener:
    """Accepts connections from its creation until `close`, which does not close the socket.

    Args:
        make_room: closes a connection of the server; False if there is none that may be closed.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        *,
        make_room: Callable[[], bool],
    ) -> None:
        listening.setblocking(False)
        listening.listen(_BACKLOG)
        self._socket = listening
        self._protocol = protocol
        self._tls = tls
        self._make_room = make_room
        self._reserve: int | None = None
        self._most_handshakes = most_connections(HANDSHAKES)
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """Handshakes in progress, in order of arrival."""
        self._log = get_logger("server")
        self._accepting = asyncio.create_task(self._accept())

    async def close(self) -> None:
        """Accept no more connections; handshakes continue."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})
        self._release_reserve()

    async def give_up(self) -> None:
        """End the handshakes that are still in progress."""
        handshakes = list(self._handshakes)
        for handshake in handshakes:
            handshake.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._keep_reserve()
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except ConnectionError:
                continue  # the client left before it was accepted
            except OSError as error:
                await self._recover(error)
                continue
            if len(self._handshakes) >= self._most_handshakes:
                self._end_oldest_handshake()
            handshake = asyncio.create_task(self._connect(connection))
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda ended: self._handshakes.pop(ended, None))

    async def _recover(self, error: OSError) -> None:
        """Make the next attempt to accept succeed, or wait a while."""
        if error.errno in _NO_FILES:
            if self._end_oldest_handshake() or self._make_room():
                await asyncio.sleep(_CLOSING_SECONDS)
                return
            if self._release_reserve():
                return
        self._log.error("Cannot accept connections", error=error)
        await asyncio.sleep(_NO_RESOURCES_SECONDS)

    def _end_oldest_handshake(self) -> bool:
        oldest = next(iter(self._handshakes), None)
        if oldest is None:
            return False
        del self._handshakes[oldest]
        oldest.cancel()
        return True

    def _keep_reserve(self) -> None:
        if self._reserve is None:
            with contextlib.suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY)

    def _release_reserve(self) -> bool:
        if self._reserve is None:
            return False
        os.close(self._reserve)
        self._reserve = None
        return True

    async def _connect(self, connection: socket.socket) -> None:
        # Clients that disconnect, or do not speak TLS, are not our errors.
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            )
