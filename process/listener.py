"""Accepts the connections of a server, and gives each to a protocol of its own, once its TLS handshake is complete.

Handshakes in progress are bounded in time, and in number: a new one takes the place of the one that has gone on for
longest, so that a client that is quick is served however many others say nothing.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable

from process.logging import get_logger

_BACKLOG = 1024
HANDSHAKES = 256
HANDSHAKE_SECONDS = 10.0
_NO_RESOURCES_SECONDS = 1.0


class Listener:
    """Accepts from when it is made until `close`, which does not close the socket."""

    def __init__(
        self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        listening.setblocking(False)
        listening.listen(_BACKLOG)
        self._socket = listening
        self._protocol = protocol
        self._tls = tls
        self._handshakes: dict[asyncio.Task[None], None] = {}
        """Those in progress, as they came."""
        self._log = get_logger("server")
        self._accepting = asyncio.create_task(self._accept())

    async def close(self) -> None:
        """Accepts no more; what goes on in handshakes is not ended."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})

    async def give_up(self) -> None:
        """Ends the handshakes that are still in progress."""
        handshakes = list(self._handshakes)
        for handshake in handshakes:
            handshake.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._socket)
            except ConnectionError:
                continue  # it was given up before it was accepted
            except OSError as error:
                self._log.error("Cannot accept connections", error=error)
                await asyncio.sleep(_NO_RESOURCES_SECONDS)
                continue
            if len(self._handshakes) >= HANDSHAKES:
                oldest = next(iter(self._handshakes))
                del self._handshakes[oldest]
                oldest.cancel()
            handshake = asyncio.create_task(self._connect(connection))
            self._handshakes[handshake] = None
            handshake.add_done_callback(lambda ended: self._handshakes.pop(ended, None))

    async def _connect(self, connection: socket.socket) -> None:
        # Clients that go away, or do not speak TLS, are no error of ours.
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            )
