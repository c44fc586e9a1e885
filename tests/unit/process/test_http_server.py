"""Where the server listens, what it refuses, how it stops."""

import asyncio
import contextlib
import gc
import gzip
import socket
import ssl
import traceback
import tracemalloc
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias, cast

import aiohttp
import aiohttp.base_protocol
import pytest
import structlog
import uvloop
from aiohttp import web

from kit.clock import settle, skip
from kit.eventually import soon
from kit.http import ask, get, serving
from localprocesses.pki import Authority
from process import listener
from process.server import HttpServer, _Connection, read_body

Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


async def answer(_request: web.BaseRequest) -> web.Response:
    return web.Response(text="here")


async def measure(request: web.BaseRequest) -> web.Response:
    return web.Response(text=str(len(await read_body(request, most=10 << 20))))


async def connect(
    server: HttpServer, sent: bytes, *, limit: int = 1 << 16
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which this has been sent. Args: limit: of the bytes that it reads ahead."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=limit)
    writer.write(sent)
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    return reader, writer


async def begin_body(server: HttpServer, size: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A request of which the last byte does not come."""
    return await connect(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"x" * (size - 1))


def url_of(server: HttpServer) -> str:
    return f"http://127.0.0.1:{server.port}/"


def serving_and_trusting(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server, and of its clients."""
    authority = Authority.create("test")
    files = authority.issue_server(["127.0.0.1"]).write(directory, "server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files.certificate, files.key)
    return tls, ssl.create_default_context(cadata=authority.bundle.decode())


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """On each of the two event loops."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner.run


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1"), ("::1", "[::1]"), ("", "[::1]")]
)
async def test_it_listens_on_ipv4_ipv6_without_brackets_and_on_both_for_the_empty_host(host: str, address: str) -> None:
    if ":" in address and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    async with serving(answer, host=host) as server:
        assert await get(f"http://{address}:{server.port}/") == (200, "here")


async def test_an_address_in_use_is_an_error_that_names_server_and_address() -> None:
    async with serving(answer) as first:
        second = HttpServer("metrics", answer, host="127.0.0.1", port=first.port)
        with pytest.raises(OSError, match="cannot listen") as caught:
            second.bind()
        expected = f"cannot listen on 127.0.0.1:{first.port} for metrics: Address already in use"
        assert str(caught.value) == expected


async def test_a_bound_server_that_never_started_gives_its_address_back() -> None:
    server = HttpServer("probes", answer, host="127.0.0.1", port=0)
    server.bind()
    port = server.port
    await server.stop()
    socket.create_server(("127.0.0.1", port)).close()


async def test_a_client_that_never_completes_its_header_is_cut_off() -> None:
    async with serving(answer, header_timeout=0.05) as server:
        reader, writer = await connect(server, b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


async def test_a_slow_handler_is_not_taken_for_a_slow_header() -> None:
    async def slow(_request: web.BaseRequest) -> web.Response:
        skip(60)
        await settle()
        return web.Response(text="late")

    async with serving(slow, header_timeout=30) as server:
        assert await get(url_of(server)) == (200, "late")


async def test_an_idle_connection_makes_room_for_a_new_one() -> None:
    async with serving(answer, max_connections=2) as server:
        idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
        assert await get(url_of(server)) == (200, "here")
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(idle[0][0].read(), 60) == b""
        assert not idle[1][0].at_eof()
        for _, writer in idle:
            writer.close()


def test_handshakes_that_do_not_go_on_make_room_for_new_ones(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 600.0)
    tls, trusting = serving_and_trusting(tmp_path)

    async def play() -> None:
        loop = asyncio.get_running_loop()
        async with serving(answer, tls=tls) as server:
            silent = []
            for _ in range(300):
                silent.append(socket.create_connection(("127.0.0.1", server.port)))
                silent[-1].setblocking(False)
                await asyncio.sleep(0)
            # The first ones are cut off, though they have much time left; the last ones are waited for.
            async with asyncio.timeout(60):
                for each in silent[:44]:
                    with contextlib.suppress(ConnectionError):
                        assert await loop.sock_recv(each, 1) == b""
            assert await get(f"https://127.0.0.1:{server.port}/", ssl=trusting) == (200, "here")
            with pytest.raises(BlockingIOError):
                silent[-1].recv(1)
        for each in silent:
            each.close()

    run(play())


def test_a_connection_that_is_lost_as_its_request_comes_is_no_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tls, trusting = serving_and_trusting(tmp_path)
    handed_on = _Connection.data_received
    lost = []

    def lose_and_hand_on(connection: _Connection, data: bytes) -> None:
        assert connection.transport is not None
        connection.transport.abort()
        handed_on(connection, data)
        lost.append(connection)

    monkeypatch.setattr(_Connection, "data_received", lose_and_hand_on)

    async def play() -> None:
        async with serving(answer, tls=tls) as server:
            with pytest.raises(aiohttp.ClientError):
                await get(f"https://127.0.0.1:{server.port}/", ssl=trusting)

    run(play())
    assert lost
    assert not caplog.records


async def test_connections_that_are_being_answered_stay_and_a_new_one_is_closed() -> None:
    entered, may_end = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.BaseRequest) -> web.Response:
        entered.set()
        await may_end.wait()
        return web.Response(text="finished")

    async with serving(slow, max_connections=1) as server:
        first = asyncio.create_task(get(url_of(server)))
        await entered.wait()
        with pytest.raises(aiohttp.ClientConnectionError):
            await get(url_of(server))
        may_end.set()
        assert await first == (200, "finished")


async def test_bodies_that_do_not_end_make_room_for_others() -> None:
    async with serving(measure, max_buffered=320_000) as server:
        held = [await begin_body(server, 100_000) for _ in range(4)]
        assert (await ask("POST", url_of(server), data=b"x" * 150_000))[1] == b"150000"
        for reader, writer in held[:3]:
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 60) == b""
            writer.close()
        reader, writer = held[3]
        writer.write(b"x")
        assert (await asyncio.wait_for(reader.read(15), 60)) == b"HTTP/1.1 200 OK"
        writer.close()


async def test_only_a_few_requests_may_be_sent_ahead_of_an_answer() -> None:
    """So that what they hold counts until they are answered, too."""
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    async with serving(answer) as server:
        reader, writer = await connect(server, request * 2)
        for _ in range(2):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\nhere"), 60)
            assert b"Connection: close" not in head
        writer.write(request * 10_000)
        answers = b""
        with contextlib.suppress(ConnectionError):
            while part := await asyncio.wait_for(reader.read(1 << 16), 60):
                answers += part
        assert answers.count(b"HTTP/1.1 200 OK") < 1000
        writer.close()


async def test_requests_that_break_off_leave_nothing() -> None:
    size, count = 5 << 20, 4
    ended = asyncio.Semaphore(0)

    async def read(request: web.BaseRequest) -> web.Response:
        try:
            return await measure(request)
        finally:
            ended.release()

    gc.collect()
    gc.disable()  # what it would find is memory until then, and it may take long
    tracemalloc.start()
    try:
        async with serving(read, max_buffered=50 << 20) as server:
            for _ in range(count):
                reader, writer = await begin_body(server, size)
                writer.transport.abort()
                async with asyncio.timeout(60):
                    await ended.acquire()
                del reader, writer
            await soon(lambda: tracemalloc.get_traced_memory()[0] < size / 2, "the memory to be free")
    finally:
        tracemalloc.stop()
        gc.enable()


async def test_a_client_that_does_not_take_its_answer_is_cut_off() -> None:
    async def much(_request: web.BaseRequest) -> web.Response:
        return web.Response(body=b"x" * (32 << 20))

    async with serving(much, request_timeout=0.2, max_connections=1) as server:
        reader, writer = await connect(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", limit=1024)

        async def until_served() -> int:
            while True:
                with contextlib.suppress(aiohttp.ClientConnectionError):
                    return (await ask("GET", url_of(server)))[0]
                await asyncio.sleep(0.01)

        assert await asyncio.wait_for(until_served(), 60) == 200
        del reader
        writer.transport.abort()


async def test_a_header_that_is_too_long_is_refused() -> None:
    async with serving(answer) as server:
        assert (await get(url_of(server) + "x" * 10_000))[0] == 400


@pytest.mark.parametrize(("size", "status"), [(100, 200), (101, 413)])
async def test_a_body_above_the_limit_is_refused(size: int, status: int) -> None:
    async def at_most(request: web.BaseRequest) -> web.Response:
        return web.Response(text=str(len(await read_body(request, most=100))))

    async with serving(at_most) as server:
        assert (await ask("POST", url_of(server), data=b"x" * size))[0] == status


async def test_a_body_that_never_ends_does_not_hold_the_connection() -> None:
    async with serving(measure, request_timeout=0.05) as server:
        reader, writer = await connect(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 503 ")
        writer.close()


async def test_a_client_that_goes_away_in_its_body_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    gone = asyncio.Event()

    async def read(request: web.BaseRequest) -> web.Response:
        if request.method == "POST":
            try:
                await read_body(request, most=100)
            finally:
                gone.set()
        return web.Response(text="here")

    async with serving(read) as server:
        _, writer = await connect(server, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        writer.close()
        async with asyncio.timeout(60):
            await gone.wait()
        assert await get(url_of(server)) == (200, "here")
    assert caplog.records == []


async def test_stopping_lets_a_request_in_flight_finish() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_request: web.BaseRequest) -> web.Response:
        entered.set()
        await leave.wait()
        return web.Response(text="finished")

    async with serving(slow, drain_timeout=60) as server:
        request = asyncio.create_task(get(url_of(server)))
        await entered.wait()
        stopping = asyncio.create_task(server.stop())
        await settle()
        assert not stopping.done()
        leave.set()
        await stopping
        assert await request == (200, "finished")
        assert not server.serving


async def test_while_it_lingers_it_answers_and_sends_clients_away() -> None:
    async with serving(answer, linger=3000) as server, aiohttp.ClientSession() as session:
        url = url_of(server)
        async with session.get(url) as response:
            assert "Connection" not in response.headers
        served = [server.serving]
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        assert [*served, server.serving] == [True, False]
        async with session.get(url) as response:
            assert (response.status, response.headers["Connection"]) == (200, "close")
        skip(3000)
        await stopping
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


async def test_compressed_bodies_stay_as_they_are() -> None:
    content = gzip.compress(b"x" * 1_000_000)
    async with serving(measure) as server:
        _, body, _ = await ask("POST", url_of(server), data=content, headers={"Content-Encoding": "gzip"})
    assert body == str(len(content)).encode()


async def test_an_error_of_a_handler_is_logged_and_answered_without_its_text() -> None:
    async def fail(_request: web.BaseRequest) -> web.Response:
        raise ValueError("what went wrong")

    with structlog.testing.capture_logs() as entries:
        async with serving(fail) as server:
            assert await get(url_of(server)) == (500, "internal server error\n")
    assert [str(entry["error"]) for entry in entries] == ["what went wrong"]


async def test_what_is_no_http_is_answered_and_not_quoted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="aiohttp.server")
    async with serving(answer) as server:
        reader, writer = await connect(server, b"GET / HTTP/1.1\r\nAuthorization\x00: secret\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.0 400 ")
        writer.close()
    assert [entry.levelname for entry in caplog.records] == ["DEBUG"]
    assert "secret" not in caplog.text


async def test_the_error_of_a_body_that_breaks_off_keeps_nothing_of_it() -> None:
    protocol = aiohttp.base_protocol.BaseProtocol(asyncio.get_running_loop())
    protocol.connection_made(asyncio.Transport())
    content = aiohttp.StreamReader(protocol, 1 << 16, loop=asyncio.get_running_loop())
    reading = asyncio.create_task(read_body(cast("web.BaseRequest", SimpleNamespace(content=content)), most=1 << 20))
    for _ in range(2):
        content.feed_data(b"x" * (100 << 10))
        await settle()
    content.set_exception(ConnectionResetError())
    with pytest.raises(ConnectionResetError) as raised:
        await reading
    kept = [value for frame, _ in traceback.walk_tb(raised.tb) for value in frame.f_locals.values()]
    assert not [value for value in kept if isinstance(value, bytes) and value]
