"""Requests of the plugin, to servers that answer as a test wants. What an API server does is in faults/test_client."""

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from kube.errors import Unreachable
from kube.runtime.client import Client, Timeout
from kube.runtime.connection import Connection, Fixed
from kubectl.transport import PlainTransport

OBJECT = b'{"kind": "Thing"}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n" + OBJECT
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Served:
    url: str
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """The first connection has."""


@asynccontextmanager
async def server(answers: Sequence[Answer]) -> AsyncIterator[Served]:
    """Answers each request in its turn."""
    left = list(answers)
    served = Served("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        try:
            while not writer.is_closing():
                served.requests.append(await reader.readuntil(b"\r\n\r\n"))
                await left.pop(0)(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # by the client
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            served.ended.set()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        served.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/prefix"
        yield served


@asynccontextmanager
async def client_of(served: Served) -> AsyncIterator[Client]:
    connection = Connection(server=served.url, tls=None, credentials=Fixed("Bearer t"), identity=())
    async with asyncio.timeout(30), PlainTransport(connection) as transport:
        yield Client(transport, user_agent="test")


def writes(*pieces: bytes, closes: bool = False) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if closes:
            writer.close()

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        writes(WHOLE),
        writes(CHUNKED, b"5\r\n" + OBJECT[:5] + b"\r\n", b"c\r\n" + OBJECT[5:] + b"\r\n0\r\n\r\n"),
        writes(b"HTTP/1.1 200 OK\r\n\r\n", OBJECT, closes=True),
    ],
    ids=["length", "chunks", "until it closes"],
)
async def test_an_answer_is_read_to_its_end(answer: Answer) -> None:
    async with server([answer]) as served, client_of(served) as client:
        assert await client.request("GET", "/a") == OBJECT


@pytest.mark.parametrize(
    "answer",
    [
        writes(b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n", closes=True),
        writes(b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n", OBJECT, closes=True),
        writes(CHUNKED, b"5\r\n" + OBJECT[:5] + b"\r\n", closes=True),
        writes(CHUNKED, b"x\r\n", closes=True),
        writes(b"no HTTP\r\n\r\n", closes=True),
        writes(closes=True),
    ],
    ids=["no body", "half a body", "half of the chunks", "no chunk", "no HTTP", "nothing"],
)
async def test_half_an_answer_is_none(answer: Answer) -> None:
    async with server([answer]) as served, client_of(served) as client:
        with pytest.raises(Unreachable, match=f'GET "{served.url}/a": '):
            await client.request("GET", "/a")


async def test_a_large_answer_comes_whole() -> None:
    body = bytes(range(256)) * (3 << 12)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with server([writes(head, body)]) as served, client_of(served) as client:
        assert await client.request("GET", "/a") == body


async def test_a_request_reports_what_and_who() -> None:
    async with server([writes(WHOLE)]) as served, client_of(served) as client:
        view = client.impersonating("jürgen", ["a", "b"])
        await view.request("GET", "/a%2Fb", params={"labelSelector": "a=b,c in (d)"})
    request, *headers = served.requests[0].decode().split("\r\n")
    assert request == "GET /prefix/a%2Fb?labelSelector=a%3Db%2Cc%20in%20%28d%29 HTTP/1.1"
    assert {
        "Authorization: Bearer t",
        "User-Agent: test",
        "Impersonate-User: jürgen",
        "Impersonate-Group: a",
        "Impersonate-Group: b",
    } <= set(headers)


async def test_a_connection_serves_one_request_after_the_other() -> None:
    async with server([writes(WHOLE)] * 3) as served, client_of(served) as client:
        for _ in range(3):
            await client.request("GET", "/a")
    assert (len(served.requests), served.connections) == (3, 1)


async def test_a_connection_that_was_closed_meanwhile_is_not_used_again() -> None:
    async with server([writes(WHOLE, closes=True), writes(WHOLE)]) as served, client_of(served) as client:
        await client.request("GET", "/a")
        await served.ended.wait()
        await client.request("GET", "/a")
    assert served.connections == 2


async def test_what_lasts_comes_piece_by_piece() -> None:
    goes_on = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        await writes(CHUNKED, b"6\r\nfirst\n\r\n")(writer)
        await goes_on.wait()
        await writes(b"7\r\nsecond\n\r\n0\r\n\r\n")(writer)

    async with server([answer]) as served, client_of(served) as client, client.lines("/log", params={}) as lines:
        assert await anext(lines) == b"first"
        goes_on.set()
        assert [line async for line in lines] == [b"second"]


async def silent(_: asyncio.StreamWriter) -> None:
    return


async def half_a_body(writer: asyncio.StreamWriter) -> None:
    await writes(b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{")(writer)


@pytest.mark.parametrize("answer", [silent, half_a_body], ids=["before the head", "in the body"])
async def test_who_gives_up_does_not_wait_for_the_answer(answer: Answer) -> None:
    async with server([answer]) as served, client_of(served) as client:
        with pytest.raises(Unreachable, match="TimeoutError"):
            await client.request("GET", "/a", timeout=0.2)
        await served.ended.wait()


async def test_a_stream_that_is_silent_for_too_long_is_broken() -> None:
    async with server([writes(CHUNKED)]) as served, client_of(served) as client:
        transport = client.transport
        with pytest.raises(Unreachable, match="timed out"):
            async with transport.send(
                "GET",
                "/a",
                headers=client.identity,
                params=None,
                body=None,
                timeout=Timeout(silence=0.1),
                lasting=True,
            ) as response:
                async for _ in response.content.iter_any():
                    pass


def test_a_connection_given_up_is_closed_by_its_thread_when_no_event_loop_runs_any_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        transport = PlainTransport(Connection(server=url, tls=None, credentials=Fixed(""), identity=()))
        loop = asyncio.new_event_loop()
        before = set(threading.enumerate())
        requested = loop.create_task(Client(transport, user_agent="test").request("GET", "/"))
        loop.run_until_complete(asyncio.sleep(0.01))
        accepted, _ = silent.accept()
        accepted.sendall(CHUNKED)
        loop.run_until_complete(asyncio.sleep(0.05))  # until it waits for the body
        requested.cancel()
        loop.run_until_complete(asyncio.wait({requested}))
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        loop.close()
        accepted.close()
        del requested, transport
        gc.collect()
    assert [str(warning.message) for warning in warned if "unclosed" in str(warning.message)] == []
