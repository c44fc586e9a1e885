"""Where the server listens, what it refuses, how it stops."""

import asyncio
import contextlib
import gzip
import socket

import aiohttp
import pytest
from aiohttp import web

from process.server import HttpServer, listen


async def answer(_request: web.BaseRequest) -> web.Response:
    return web.Response(text="here")


@contextlib.asynccontextmanager
async def serving(handler=answer, *, host="127.0.0.1", **settings):
    server = HttpServer("probes", handler, host=host, port=0, **settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1"), ("::1", "[::1]"), ("", "[::1]")]
)
async def test_it_listens_on_ipv4_ipv6_without_brackets_and_on_both_for_the_empty_host(host, address):
    if ":" in address and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    async with serving(host=host) as server:
        assert await get(f"http://{address}:{server.port}/") == (200, "here")


async def test_an_address_in_use_is_an_error_that_names_server_and_address():
    async with serving() as first:
        second = HttpServer("metrics", answer, host="127.0.0.1", port=first.port)
        with pytest.raises(OSError, match="cannot listen") as caught:
            second.bind()
        expected = f"cannot listen on 127.0.0.1:{first.port} for metrics: Address already in use"
        assert str(caught.value) == expected


async def test_a_bound_server_that_never_started_gives_its_address_back():
    server = HttpServer("probes", answer, host="127.0.0.1", port=0)
    server.bind()
    port = server.port
    await server.stop()
    socket.create_server(("127.0.0.1", port)).close()


async def test_a_client_that_never_completes_its_header_is_cut_off():
    async with serving(header_timeout=0.05) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


async def test_a_slow_handler_is_not_taken_for_a_slow_header():
    async def slow(_request):
        await asyncio.sleep(1.5)
        return web.Response(text="late")

    async with serving(slow, header_timeout=1) as server:
        assert await get(f"http://127.0.0.1:{server.port}/") == (200, "late")


async def test_connections_above_the_limit_are_closed_and_free_places_are_reused():
    async with serving(max_connections=1) as server:
        url = f"http://127.0.0.1:{server.port}/"
        _, holder = await asyncio.open_connection("127.0.0.1", server.port)
        with pytest.raises(aiohttp.ClientConnectionError):
            await get(url)
        holder.close()
        await holder.wait_closed()

        async def until_served():
            while True:
                with contextlib.suppress(aiohttp.ClientConnectionError):
                    return await get(url)
                await asyncio.sleep(0.01)

        assert await asyncio.wait_for(until_served(), 60) == (200, "here")


async def test_a_header_that_is_too_long_is_refused():
    async with serving() as server:
        assert (await get(f"http://127.0.0.1:{server.port}/{'x' * 10_000}"))[0] == 400


async def test_a_body_above_the_limit_is_refused():
    async def read(request):
        return web.Response(text=str(len(await request.read())))

    async with serving(read, max_body=100) as server, aiohttp.ClientSession() as session:
        for size, status in ((100, 200), (101, 413)):
            async with session.post(f"http://127.0.0.1:{server.port}/", data=b"x" * size) as response:
                assert response.status == status


async def test_a_body_that_never_ends_does_not_hold_the_connection():
    async def read(request):
        return web.Response(body=await request.read())

    async with serving(read, request_timeout=0.05) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        answer = await asyncio.wait_for(reader.read(), 60)
        assert answer.startswith(b"HTTP/1.1 503 ")
        writer.close()


async def test_a_client_that_goes_away_in_its_body_is_no_error(caplog):
    gone = asyncio.Event()

    async def read(request):
        if request.method == "POST":
            try:
                await request.read()
            finally:
                gone.set()
        return web.Response(text="here")

    async with serving(read) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()
        async with asyncio.timeout(60):
            await gone.wait()
        assert await get(f"http://127.0.0.1:{server.port}/") == (200, "here")
    assert caplog.records == []


async def test_stopping_lets_a_request_in_flight_finish():
    entered = asyncio.Event()

    async def slow(_request):
        entered.set()
        await asyncio.sleep(0.05)
        return web.Response(text="finished")

    async with serving(slow, drain_timeout=5) as server:
        request = asyncio.create_task(get(f"http://127.0.0.1:{server.port}/"))
        await entered.wait()
        await server.stop()
        assert await request == (200, "finished")
        assert not server.serving


async def test_while_it_lingers_it_answers_and_sends_clients_away():
    async with serving(linger=3) as server, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{server.port}/"
        async with session.get(url) as response:
            assert "Connection" not in response.headers
        assert server.serving
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0)
        assert not server.serving
        async with session.get(url) as response:
            assert (response.status, response.headers["Connection"]) == (200, "close")
        await stopping
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


async def test_a_socket_that_listens_already_is_taken_as_it_is():
    listening = listen("webhooks", "127.0.0.1", 0)
    address = listening.getsockname()
    server = HttpServer("webhooks", answer, listening=listening)
    assert server.address == address
    await server.start()
    try:
        assert await get(f"http://127.0.0.1:{server.port}/") == (200, "here")
    finally:
        await server.stop()


async def test_compressed_bodies_stay_as_they_are():
    async def length(request: web.BaseRequest) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    content = gzip.compress(b"x" * 1_000_000)
    async with (
        serving(length) as server,
        aiohttp.ClientSession() as session,
        session.post(
            f"http://127.0.0.1:{server.port}/", data=content, headers={"Content-Encoding": "gzip"}
        ) as response,
    ):
        assert await response.text() == str(len(content))
