"""Clients of the admission server, good and bad: requests, failed TLS handshakes, and connections that break off."""

import asyncio
import contextlib
import itertools
import random
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial

import aiohttp

from benchmarks.reviews import Load
from benchmarks.soak_load import Step
from localprocesses.local import HOST

_REQUEST_PERIOD = 0.1
_BAD_PERIOD = 1.75
"""Of each way to misbehave."""
_CONNECTION_REQUESTS = 200
"""After so many a client starts over with a new connection."""
_PATIENCE = 5.0
_GARBAGE = b"GET / HTTP/1.1\r\nHost: you are not speaking TLS\r\n\r\n"


class Clients:
    """Of the server at `port`."""

    def __init__(self, port: int, loads: Sequence[Load]) -> None:
        self._port = port
        self._loads = loads
        self._requests = itertools.count()
        self._session: aiohttp.ClientSession | None = None
        self._trusting = ssl.create_default_context()
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE
        self._distrusting = ssl.create_default_context()
        bad: Mapping[str, Callable[[], Awaitable[None]]] = {
            "connections without a byte": self._leave_at_once,
            "handshakes in no TLS": self._speak_no_tls,
            "handshakes broken off": self._break_handshake,
            "handshakes without trust": self._distrust,
            "connections reset in the header": self._break_header,
            "connections closed in the body": self._break_body,
            "connections reset before the answer": self._leave_before_answer,
        }
        self.steps: Sequence[Step] = (
            Step("requests", _REQUEST_PERIOD, self._ask),
            *(Step(name, _BAD_PERIOD, partial(_patiently, act)) for name, act in bad.items()),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _ask(self) -> None:
        number = next(self._requests)
        if number % _CONNECTION_REQUESTS == 0 or self._session is None:
            await self.close()
            limit = aiohttp.ClientTimeout(total=_PATIENCE * 2)
            connector = aiohttp.TCPConnector(ssl=self._trusting)
            self._session = aiohttp.ClientSession(connector=connector, timeout=limit)
        load = self._loads[number % len(self._loads)]
        url = f"https://{HOST}:{self._port}{load.path}"
        async with self._session.post(url, data=load.body, headers={"Content-Type": "application/json"}) as answer:
            answer.raise_for_status()
            await answer.read()

    # --- how one can misbehave

    async def _leave_at_once(self) -> None:
        async with self._connection():
            pass

    async def _speak_no_tls(self) -> None:
        async with self._connection() as (reader, writer):
            writer.write(_GARBAGE)
            with contextlib.suppress(OSError):
                await reader.read()

    async def _break_handshake(self) -> None:
        """After the first message, or after the server's answer to it."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._trusting.wrap_bio(incoming, outgoing, server_hostname=HOST)
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        async with self._connection() as (reader, writer):
            writer.write(outgoing.read())
            if random.random() < 0.5:  # noqa: S311 - not a secret
                await reader.read(100)
            _reset(writer)

    async def _distrust(self) -> None:
        with contextlib.suppress(ssl.SSLError):
            async with self._connection(self._distrusting):
                pass

    async def _break_header(self) -> None:
        async with self._connection(self._trusting) as (_, writer):
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le")
            await writer.drain()
            _reset(writer)

    async def _break_body(self) -> None:
        async with self._connection(self._trusting) as (_, writer):
            head, body = self._message()
            writer.write(head + body[: len(body) // 2])
            await writer.drain()

    async def _leave_before_answer(self) -> None:
        async with self._connection(self._trusting) as (_, writer):
            head, body = self._message()
            writer.write(head + body)
            await writer.drain()
            _reset(writer)

    def _message(self) -> tuple[bytes, bytes]:
        load = random.choice(self._loads)  # noqa: S311 - not a secret
        head = f"POST {load.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(load.body)}\r\n\r\n".encode(), load.body

    @contextlib.asynccontextmanager
    async def _connection(
        self, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(HOST, self._port, ssl=tls)
        try:
            yield reader, writer
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _patiently(act: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(_PATIENCE):
        await act()


def _reset(writer: asyncio.StreamWriter) -> None:
    """By a RST: without lingering the kernel sends one in place of a FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
