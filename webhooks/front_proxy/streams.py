"""Streams of bytes in both directions, and copying from one to another at the speed of the slower one."""

import asyncio
import time
from dataclasses import dataclass, field

MOST = 64 << 10
"""Size of the largest head of a request or response, and of buffers."""


class Ended(ConnectionError):
    """The other end closed the connection."""


@dataclass(slots=True)
class Stream:
    """A connection.

    Attributes:
        used: monotonic time of the last use in either direction.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    used: float = field(default_factory=time.monotonic)

    @property
    def peer(self) -> str:
        """IP address of the other end; empty if it is unknown."""
        address = self.writer.get_extra_info("peername")
        return str(address[0]) if address else ""

    async def send(self, data: bytes) -> None:
        """Send, and let other connections continue: as long as buffers have data and room, nothing else would."""
        self.used = time.monotonic()
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(0)

    async def read(self, most: int = MOST) -> bytes:
        """Return what arrives next; empty at the end."""
        data = await self.reader.read(most)
        self.used = time.monotonic()
        return data

    async def exactly(self, size: int) -> bytes:
        try:
            data = await self.reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise Ended from None
        self.used = time.monotonic()
        return data

    async def until(self, end: bytes) -> bytes:
        """Return what arrives up to and including `end`.

        Raises:
            TooLong: there are more than `MOST` bytes before it.
        """
        try:
            data = await self.reader.readuntil(end)
        except asyncio.IncompleteReadError:
            raise Ended from None
        except asyncio.LimitOverrunError:
            raise TooLong from None
        self.used = time.monotonic()
        return data

    def close(self) -> None:
        self.writer.close()


class TooLong(ValueError):
    """A head is larger than `MOST`."""


async def copy(source: Stream, target: Stream, size: int) -> None:
    """Copy exactly so many bytes."""
    while size:
        data = await source.read(min(size, MOST))
        if not data:
            raise Ended
        size -= len(data)
        await target.send(data)


async def copy_all(source: Stream, target: Stream) -> None:
    """Copy until the source ends."""
    while data := await source.read():
        await target.send(data)


async def both(first: "asyncio.Task[None]", second: "asyncio.Task[None]") -> None:
    """Wait until one of two tasks ends, and cancel the other one."""
    try:
        done, _ = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
    for task in done:
        task.result()
