"""Answers that decompress to much, and pages that are much together, are given up (a loopback server sends them)."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest

from gardener.api.garden import SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from kube.errors import AnswerTooLong, NotUnderstood
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, Resource
from kube.runtime import answers
from kube.runtime.client import Client
from kube.runtime.connection import Connection, Fixed
from kube.runtime.http import aiohttp
from kube.runtime.paging import MOST_BYTES, Paging
from kube.runtime.transport import Transport

MIB = 1 << 20


THINGS = Resource("example.com", "v1", "Thing", "things", True)


def packed(mebibytes: int, *, before: bytes = b"", after: bytes = b"") -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    pieces = [before, *(b"a" * MIB for _ in range(mebibytes)), after]
    return b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()])


def page(number: int) -> bytes:
    before = f'{{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{{"continue":"{number}"}},"items":[{{"a":"'
    return packed(10, before=before.encode(), after=b'"}]}')


@asynccontextmanager
async def serving(bodies: Iterator[bytes]) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = next(bodies)
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        with suppress(OSError):
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield "http://{}:{}".format(*server.sockets[0].getsockname())


class Counted:
    """A response that counts the bytes that are read of it, decompressed."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status, self.headers, self.content = response.status, response.headers, self
        self.response, self.read = response, 0

    async def iter_any(self) -> AsyncIterator[bytes]:
        async for chunk in self.response.content.iter_any():
            self.read += len(chunk)
            yield chunk


async def test_an_answer_is_read_no_further_than_its_bound_of_decompressed_bytes() -> None:
    async with (
        serving(iter([packed(150)])) as server,
        aiohttp.ClientSession() as session,
        session.get(server) as response,
    ):
        counted = Counted(response)
        with pytest.raises(AnswerTooLong):
            await answers.whole("GET", "/", counted)
        assert counted.read < 40 * MIB


async def test_a_list_without_end_is_given_up_by_its_bytes() -> None:
    numbers = count()
    async with serving(page(number) for number in numbers) as url:
        connection = Connection(server=url, tls=None, credentials=Fixed(), identity=(url,))
        async with Transport(connection) as transport:
            with pytest.raises(NotUnderstood, match=f"more than {MOST_BYTES} bytes"):
                await Client(transport, user_agent="test").list(THINGS)
    assert next(numbers) * 10 * MIB < MOST_BYTES + 20 * MIB


def test_pages_of_a_foreign_kind_are_limited_together() -> None:
    paging, pages = Paging(THINGS), count(1)
    with pytest.raises(NotUnderstood, match=f"more than {MOST_BYTES} bytes"):
        while next(pages) < 1000:
            paging.received(10 * MIB)
    assert next(pages) * 10 * MIB < MOST_BYTES + 30 * MIB


@pytest.mark.parametrize("resource", [CONFIG_MAPS, DEPLOYMENTS, SHOOTS, MANAGED_RESOURCES])
def test_pages_of_kinds_of_kubernetes_and_gardener_are_not(resource: Resource) -> None:
    paging = Paging(resource)
    for _ in range(100):
        paging.received(10 * MIB)
