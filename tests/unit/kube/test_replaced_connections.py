"""What goes on when a connection is replaced: the requests after that, watches, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from kit.eventually import soon
from kube.errors import Unreachable
from kube.objects import Key, Object, resource_version
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Caches, View
from kube.runtime.client import Client
from kube.runtime.connection import Connection, Fixed
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.transport import Transport
from kube.runtime.watch import Timings

LIST: Object = {"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": []}
ADDED = (
    b'{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap",'
    b'"metadata":{"namespace":"n","name":"a","resourceVersion":"6"}}}\n'
)


class Server:
    """Answers lists, and keeps watches open; some credentials it refuses."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []
        """Credentials, verb, and the resourceVersion that was requested."""
        self.refused: set[str] = set()
        self.open = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        credentials, watches = request.headers["Authorization"], "watch" in request.query
        self.calls.append((credentials, "watch" if watches else "list", request.query.get("resourceVersion", "")))
        if credentials in self.refused:
            return web.json_response({"kind": "Status", "code": 401, "reason": "Unauthorized"}, status=401)
        if not watches:
            return web.json_response(LIST)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(ADDED)
        self.open += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.open -= 1
        raise AssertionError


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Server, Connection]]:
    server = Server()
    async with RawTestServer(server.answer) as running:
        url = str(running.make_url("")).rstrip("/")
        yield server, Connection(server=url, tls=None, credentials=Fixed("first"), identity=(url, "first"))


async def test_a_watch_goes_on_where_it_is_with_the_new_credentials() -> None:
    async with served() as (server, connection), Transport(connection) as transport:
        caches = Caches(Client(transport, user_agent="test"))
        store = caches.acquire(View(CONFIG_MAPS, resource_version))
        await soon(lambda: store.get(Key("n", "a")) == 6)
        transport.replace(replace(connection, credentials=Fixed("second")))
        await soon(lambda: ("second", "watch", "6") in server.calls)
        # What happened until then is not listed again, and nothing is doubted.
        assert [call for call in server.calls if call[1] == "list"] == [("first", "list", "")]
        assert not caches.unverified
        await soon(lambda: server.open == 1)
        await caches.close()


async def test_who_waits_after_a_failure_tries_again_at_once() -> None:
    patient = Timings(first_back_off=600, longest_back_off=600)
    async with served() as (server, connection), Transport(connection) as transport:
        server.refused.add("first")
        caches = Caches(Client(transport, user_agent="test"), timings=patient)
        view = View(CONFIG_MAPS, resource_version)
        store = caches.acquire(view)
        await caches.tried(view, timeout=60)
        assert not store.synced.is_set()
        transport.replace(replace(connection, credentials=Fixed("second")))
        caches.wake()
        await soon(store.synced.is_set)
        await caches.close()


async def test_another_server_is_refused_and_nothing_is_changed() -> None:
    async with served() as (server, connection), Transport(connection) as transport:
        with pytest.raises(ConfigurationError, match="close it, and open another one"):
            transport.replace(replace(connection, server="https://other", credentials=Fixed("second")))
        assert await Client(transport, user_agent="test").list(CONFIG_MAPS) == []
        assert server.calls == [("first", "list", "")]


async def test_caches_that_were_closed_begin_no_watch() -> None:
    async with served() as (server, connection), Transport(connection) as transport:
        caches, view = Caches(Client(transport, user_agent="test")), View(CONFIG_MAPS, resource_version)
        caches.acquire(view)
        await caches.close()
        with pytest.raises(Unreachable, match="is closed"):
            caches.acquire(view)
        await caches.release(view)
        assert (list(caches.stores()), server.open) == ([], 0)
