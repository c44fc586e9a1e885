"""What the first process asks its workers, over a socket pair: a question at a time, each answered in turn.

    ["failure", endpoint, check]   why a health check of `healthz` or `readyz` fails, empty if it does not
    ["metrics"]                    what the worker has counted

Messages are MessagePack, after their length in four bytes. The end of the channel is the end of the other process.
"""

import asyncio
import socket
import struct
from collections.abc import Iterable
from typing import Any

import msgspec
from prometheus_client import REGISTRY

from process.errors import error_text
from process.probes import HealthCheck
from webhooks.merged_metrics import Family, families_of

_LENGTH = struct.Struct(">I")
_ANSWER_SECONDS = 9.0
"""Less than a probe waits."""

_encode, _decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode


class ChannelClosed(Exception):
    """The other process is gone, or was never there."""


async def _send(writer: asyncio.StreamWriter, message: Any) -> None:
    content = _encode(message)
    writer.write(_LENGTH.pack(len(content)) + content)
    await writer.drain()


async def _receive(reader: asyncio.StreamReader) -> Any:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return _decode(await reader.readexactly(length))


class Questions:
    """The end of the first process."""

    def __init__(self, channel: socket.socket) -> None:
        self._socket = channel
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        self._streams = await asyncio.open_unix_connection(sock=self._socket)

    async def failure(self, endpoint: str, check: str) -> str:
        """Why a health check fails. Raises ChannelClosed."""
        return msgspec.convert(await self._ask(["failure", endpoint, check]), str)

    async def metrics(self) -> list[Family]:
        """Raises ChannelClosed."""
        return msgspec.convert(await self._ask(["metrics"]), list[Family])

    async def _ask(self, question: list[str]) -> Any:
        async with self._turn:
            if self._streams is None:
                raise ChannelClosed("not started yet")
            reader, writer = self._streams
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await _send(writer, question)
                    return await _receive(reader)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                # After a question without an answer, the next answer would be to that one.
                self._streams = None
                writer.close()
                raise ChannelClosed("does not answer") from error


class FirstProcessEnded(Exception):
    """Nobody looks after this worker any more."""


class Answers:
    """The end of a worker; a component in the sense of `process.runner`."""

    name = "channel to the first process"

    def __init__(
        self, channel: socket.socket, *, healthz: Iterable[HealthCheck], readyz: Iterable[HealthCheck]
    ) -> None:
        self._socket = channel
        self._checks = {
            (endpoint, check.name): check
            for endpoint, checks in (("healthz", healthz), ("readyz", readyz))
            for check in checks
        }
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def start(self) -> None:
        self._streams = await asyncio.open_unix_connection(sock=self._socket)

    async def wait(self) -> None:
        """Raises: FirstProcessEnded."""
        assert self._streams is not None
        reader, writer = self._streams
        try:
            while True:
                await _send(writer, await self._answer(await _receive(reader)))
        except (OSError, asyncio.IncompleteReadError):
            raise FirstProcessEnded("the first process of the webhook server has ended") from None

    async def stop(self) -> None:
        if self._streams is not None:
            self._streams[1].close()

    async def _answer(self, question: list[str]) -> Any:
        match question:
            case ["failure", endpoint, name]:
                return await self._failure(endpoint, name)
            case _:
                return families_of(REGISTRY)

    async def _failure(self, endpoint: str, name: str) -> str:
        try:
            await self._checks[endpoint, name].run()
        except Exception as error:  # noqa: BLE001 - whatever a check raises is its reason
            return error_text(error)
        return ""
