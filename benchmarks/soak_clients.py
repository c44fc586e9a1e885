"""Clients of the admission server, good and bad: requests, failed TLS handshakes, and connections that break off."""

import asyncio
import contextlib
import itertools
import random
import socket
import ssl
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import aiohttp

from benchmarks.admission_server import HOST
from benchmarks.reviews import Load

_REQUEST_PERIOD = 0.1
_BAD_PERIOD = 0.25
_CONNECTION_REQUESTS = 200
"""After so many a client starts over with a new connection."""
_PATIENCE = 5.0
_GARBAGE = b"GET / HTTP/1.1\r\nHost: you are not speaking TLS\r\n\r\n"


class Clients:
    """Of the server at `port`."""

    def __init__(self, port: int, loads: Sequence[Load]) -> None:
        self._port = port
        self._loads = loads
        self._trusting = ssl.create_default_context()
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE
        self._distrusting = ssl.create_default_context()
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._bad: Sequence[tuple[str, Callable[[], Awaitable[None]]]] = (
            ("connections without a byte", self._leave_at_once),
            ("handshakes in no TLS", self._speak_no_tls),
            ("handshakes broken off", self._break_handshake),
            ("handshakes without trust", self._distrust),
            ("connections reset in the header", self._break_header),
            ("connections closed in the body", self._break_body),
            ("connections reset before the answer", self._leave_before_answer),
        )

    async def flow(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ask(end))
            tasks.create_task(self._misbehave(end))

    async def _ask(self, end: float) -> None:
        loads = itertools.cycle(self._loads)
        while time.monotonic() < end:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self._trusting)) as session:
                for load in itertools.islice(loads, _CONNECTION_REQUESTS):
                    if time.monotonic() >= end:
                        break
                    await self._request(session, load)
                    await asyncio.sleep(_REQUEST_PERIOD)

    async def _request(self, session: aiohttp.ClientSession, load: Load) -> None:
        url = f"https://{HOST}:{self._port}{load.path}"
        limit = aiohttp.ClientTimeout(total=_PATIENCE * 2)
        try:
            async with session.post(
                url, data=load.body, headers={"Content-Type": "application/json"}, timeout=limit
            ) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            self.failed[f"requests: {type(error).__name__}"] += 1
        else:
            (self.done if answer.status == 200 else self.failed)["requests"] += 1

    async def _misbehave(self, end: float) -> None:
        for name, behave in itertools.cycle(self._bad):
            if time.monotonic() >= end:
                return
            try:
                async with asyncio.timeout(_PATIENCE):
                    await behave()
            except OSError as error:  # what the server makes of it is none of our business
                self.failed[f"{name}: {type(error).__name__}"] += 1
            else:
                self.done[name] += 1
            await asyncio.sleep(_BAD_PERIOD)

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


def _reset(writer: asyncio.StreamWriter) -> None:
    """By a RST: without lingering the kernel sends one in place of a FIN."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
