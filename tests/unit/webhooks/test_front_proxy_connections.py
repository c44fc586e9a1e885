"""Connections of the front proxy beyond its maximum: which one is closed."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kit.kubeconfigs import with_token_file, written
from kube.clock import utc_now
from kube.runtime.client import Client
from kube.runtime.connection import Connection, load_kubeconfig
from kube.runtime.transport import Transport
from localprocesses.pki import Authority
from webhooks.front_proxy import server as front_proxy
from webhooks.front_proxy.server import FrontProxy
from webhooks.front_proxy.upstream import Upstream
from webhooks.tokens.front_proxies import FrontProxies

_REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Connected:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def is_served(self) -> bool:
        with contextlib.suppress(ConnectionError):
            self._writer.write(_REQUEST)
            async with asyncio.timeout(60):
                return await self._reader.read(1 << 16) == _ANSWER
        return False

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class Clients(contextlib.AsyncExitStack):
    """Of a front proxy, with addresses 127.0.0.N."""

    def __init__(self, port: int, tls: ssl.SSLContext) -> None:
        super().__init__()
        self._port, self._tls = port, tls

    async def connect(self, number: int) -> Connected:
        address = f"127.0.0.{number}", 0
        made = Connected(*await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls, local_addr=address))
        self.push_async_callback(made.close)
        return made


@contextlib.asynccontextmanager
async def _api_server(tls: ssl.SSLContext) -> AsyncIterator[int]:
    """Answers each request. Yields the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(_ANSWER)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


def _connection(server: str, authority: Authority, directory: Path) -> Connection:
    token = written(directory / "token", "t")
    content = with_token_file(server, ca=authority.bundle, file=token)
    return load_kubeconfig(written(directory / "kubeconfig", content))


@pytest.fixture
async def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Clients]:
    """Of a proxy that accepts four connections."""
    monkeypatch.setattr(front_proxy, "_MAX_CONNECTIONS", 4)
    authority = Authority.create("test")
    files = authority.issue_server(["127.0.0.1"]).write(tmp_path, "server")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(files.certificate, files.key)
    async with (
        _api_server(tls) as port,
        Transport(_connection(f"https://127.0.0.1:{port}", authority, tmp_path)) as garden,
    ):
        proxy = FrontProxy(
            host="127.0.0.1",
            port=0,
            tls=tls,
            proxies=FrontProxies(Client(garden, user_agent="test")),
            upstream=Upstream(garden, None),
            linger=0.0,
            now=utc_now,
        )
        await proxy.start()
        async with Clients(proxy.address[1], ssl.create_default_context(cadata=authority.bundle.decode())) as clients:
            yield clients
        await proxy.stop()


async def test_a_new_connection_replaces_the_idlest_one_of_the_address_with_the_most(clients: Clients) -> None:
    first, second, third = [await clients.connect(2) for _ in range(3)]
    other = await clients.connect(3)
    assert await first.is_served()
    new = await clients.connect(4)
    assert [await each.is_served() for each in (new, second, first, third, other)] == [True, False, True, True, True]


async def test_an_address_with_as_many_as_others_gets_no_more(clients: Clients) -> None:
    opened = [await clients.connect(number) for number in (2, 2, 3, 3)]
    assert not await (await clients.connect(2)).is_served()
    assert not await (await clients.connect(3)).is_served()
    assert [await each.is_served() for each in opened] == [True] * 4
