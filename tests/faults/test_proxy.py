"""Each fault of the proxy as a client of the real API server meets it."""

import asyncio
import contextlib
import errno
import json
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from yarl import URL

from devcluster.cluster import Cluster
from devcluster.testing.faults import (
    Answer,
    Delay,
    EndWatch,
    LateEvents,
    RepeatEvents,
    Reset,
    Rule,
    Silence,
    Trickle,
    WatchEnd,
    expired,
    internal_error,
    throttled,
    unauthorized,
    unavailable,
)
from devcluster.testing.proxy import FaultProxy
from kit.eventually import soon
from kit.proxied import proxy_to

SOON = 60.0
"""Seconds within which everything that is to happen has happened."""
QUIET = 0.3
"""Seconds of nothing that count as silence."""


class Client:
    """A plain client of the Secrets of one namespace, since controllers put none there."""

    def __init__(self, *, session: aiohttp.ClientSession, url: str, namespace: str) -> None:
        self.session = session
        self.path = f"{url}/api/v1/namespaces/{namespace}/secrets"

    def get(self, name: str = "") -> Any:
        return self.session.get(f"{self.path}/{name}" if name else self.path)

    def create(self, name: str, *, data: str = "eHh4") -> Any:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"key": data}}
        return self.session.post(self.path, json=body)

    async def exists(self, name: str) -> bool:
        async with self.get(name) as answer:
            return bool(answer.status == 200)

    async def version(self) -> str:
        async with self.get() as answer:
            answer.raise_for_status()
            return str((await answer.json())["metadata"]["resourceVersion"])

    @contextlib.asynccontextmanager
    async def watch(self) -> AsyncIterator[aiohttp.ClientResponse]:
        """A watch from now on."""
        params = {"watch": "1", "resourceVersion": await self.version()}
        async with self.session.get(self.path, params=params) as answer:
            yield answer


async def read_line(watch: aiohttp.ClientResponse) -> bytes:
    async with asyncio.timeout(SOON):
        return await watch.content.readline()


async def read_names(watch: aiohttp.ClientResponse, count: int) -> list[str]:
    return [json.loads(await read_line(watch))["object"]["metadata"]["name"] for _ in range(count)]


@pytest.fixture
async def session(cluster: Cluster) -> AsyncIterator[aiohttp.ClientSession]:
    trust = ssl.create_default_context(cadata=cluster.ca)
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {cluster.token}", "User-Agent": "fault-test/1"},
        connector=aiohttp.TCPConnector(ssl=trust),
    ) as session:
        yield session


@pytest.fixture
def direct(cluster: Cluster, session: aiohttp.ClientSession, namespace: str) -> Client:
    """Past the proxy: reads what the API server really holds."""
    return Client(session=session, url=cluster.url, namespace=namespace)


@pytest.fixture
def client(proxy: FaultProxy, session: aiohttp.ClientSession, namespace: str) -> Client:
    return Client(session=session, url=proxy.url, namespace=namespace)


async def test_without_rules_requests_and_watches_go_through(proxy: FaultProxy, client: Client) -> None:
    async with client.watch() as watch, client.create("a", data="eHh4" * 75_000) as created:
        assert created.status == 201
        event = json.loads(await read_line(watch))
        assert event["type"] == "ADDED"
        assert event["object"]["data"] == {"key": "eHh4" * 75_000}
    async with client.get("missing") as answer:
        assert answer.status == 404
        assert (await answer.json())["reason"] == "NotFound"
    assert not proxy.injected
    seen = [(entry.request.method, entry.request.watch, entry.status, entry.fault) for entry in proxy.log]
    assert seen == [
        ("GET", False, 200, ""),
        ("GET", True, 200, ""),
        ("POST", False, 201, ""),
        ("GET", False, 404, ""),
    ]
    assert {entry.request.user_agent for entry in proxy.log} == {"fault-test/1"}


async def test_a_wrong_token_reaches_the_api_server_as_it_is(client: Client) -> None:
    async with client.session.get(client.path, headers={"Authorization": "Bearer wrong"}) as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    "fault",
    [expired(), unauthorized(), internal_error(), unavailable(retry_after=1)],
    ids=lambda fault: fault.name,
)
async def test_a_failure_stands_in_for_the_answer(
    proxy: FaultProxy, client: Client, direct: Client, fault: Answer
) -> None:
    proxy.rules.add(Rule(fault=fault, methods=("POST",), times=1))
    async with client.create("a") as answer:
        assert answer.status == fault.code
        status = await answer.json()
        assert (status["code"], status["reason"]) == (fault.code, fault.reason)
    assert proxy.injected == {fault.name: 1}
    assert not await direct.exists("a")
    async with client.create("a") as answer:
        assert answer.status == 201


async def test_a_throttled_client_learns_when_to_come_back(proxy: FaultProxy, client: Client) -> None:
    proxy.rules.add(Rule(fault=throttled(retry_after=2), times=1))
    async with client.get() as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "2")


async def test_a_failure_can_hide_that_the_write_was_done(proxy: FaultProxy, client: Client, direct: Client) -> None:
    proxy.rules.add(Rule(fault=internal_error(carried_out=True), methods=("POST",)))
    async with client.create("a") as answer:
        assert answer.status == 500
    assert await direct.exists("a")


async def test_a_watch_from_an_old_version_starts_with_410(proxy: FaultProxy, client: Client) -> None:
    proxy.rules.add(Rule(fault=expired(), watch=True, times=1))
    async with client.watch() as watch:
        assert watch.status == 410
        assert (await watch.json())["reason"] == "Expired"
    async with client.watch() as watch:
        assert watch.status == 200


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_reset_leaves_open_whether_the_write_was_done(
    proxy: FaultProxy, client: Client, direct: Client, carried_out: bool
) -> None:
    fault = Reset(carried_out=carried_out)
    proxy.rules.add(Rule(fault=fault, methods=("POST",), times=1))
    with pytest.raises(aiohttp.ClientOSError) as caught:
        async with client.create("a"):
            pass
    assert caught.value.errno == errno.ECONNRESET
    assert await direct.exists("a") is carried_out
    assert proxy.injected == {fault.name: 1}
    assert proxy.log[-1].status is None
    assert proxy.log[-1].answer == (201 if carried_out else None)


@pytest.mark.parametrize("carried_out", [False, True])
async def test_silence_keeps_the_connection_open_without_an_answer(
    proxy: FaultProxy, client: Client, direct: Client, carried_out: bool
) -> None:
    fault = Silence(carried_out=carried_out)
    proxy.rules.add(Rule(fault=fault, methods=("POST",), times=1))
    creating = asyncio.ensure_future(client.create("a"))
    await soon(lambda: proxy.injected[fault.name] == 1)
    done, _ = await asyncio.wait([creating], timeout=QUIET)
    assert not done
    assert await direct.exists("a") is carried_out
    creating.cancel()
    await asyncio.wait([creating])


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_delay_is_spent_before_or_after_the_write(
    proxy: FaultProxy, client: Client, direct: Client, carried_out: bool
) -> None:
    # Before the write, it has to last until a user has looked.
    fault = Delay(seconds=0.5 if carried_out else 5, carried_out=carried_out)
    proxy.rules.add(Rule(fault=fault, methods=("POST",)))
    began = time.monotonic()
    creating = asyncio.ensure_future(client.create("a"))
    await soon(lambda: proxy.injected[fault.name] == 1)
    assert await direct.exists("a") is carried_out
    async with await creating as answer:
        assert answer.status == 201
    assert time.monotonic() - began >= fault.seconds


async def test_a_trickled_body_arrives_whole_but_slowly(proxy: FaultProxy, client: Client) -> None:
    async with client.create("a", data="eHh4" * 250) as answer:
        assert answer.status == 201
    proxy.rules.add(Rule(fault=Trickle(size=100, pause=0.02), methods=("GET",)))
    began = time.monotonic()
    async with client.get("a") as answer:
        assert (await answer.json())["data"] == {"key": "eHh4" * 250}
    assert time.monotonic() - began >= 10 * 0.02


async def add(client: Client, *names: str) -> None:
    for name in names:
        async with client.create(name) as answer:
            assert answer.status == 201


async def nothing_more_comes(watch: aiohttp.ClientResponse) -> bool:
    try:
        async with asyncio.timeout(QUIET):
            await watch.content.readline()
    except TimeoutError:
        return True
    return False


async def check_watch_end(how: WatchEnd, watch: aiohttp.ClientResponse) -> None:
    """After all events were read."""
    match how:
        case WatchEnd.CLOSED:
            assert await read_line(watch) == b""
        case WatchEnd.EXPIRED:
            event = json.loads(await read_line(watch))
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
            assert await read_line(watch) == b""
        case WatchEnd.RESET:
            with pytest.raises(aiohttp.ClientError):
                await read_line(watch)
        case WatchEnd.SILENT:
            assert await nothing_more_comes(watch)
        case WatchEnd.TRUNCATED:
            rest = await read_line(watch)
            assert rest.startswith(b'{"type":')
            assert not rest.endswith(b"\n")


@pytest.mark.parametrize("how", WatchEnd)
async def test_a_watch_ends_after_so_many_events(
    proxy: FaultProxy, client: Client, direct: Client, how: WatchEnd
) -> None:
    proxy.rules.add(Rule(fault=EndWatch(how=how, after_events=2), times=1))
    async with client.watch() as watch:
        await add(direct, "a", "b", "c")
        if how is not WatchEnd.RESET:  # which may overtake events that were not read yet
            assert await read_names(watch, 2) == ["a", "b"]
            await check_watch_end(how, watch)
        else:
            with pytest.raises(aiohttp.ClientError):
                await read_names(watch, 3)
    assert proxy.injected == {how.value: 1}


@pytest.mark.parametrize("how", WatchEnd)
async def test_a_watch_ends_as_soon_as_it_is_open(proxy: FaultProxy, client: Client, how: WatchEnd) -> None:
    proxy.rules.add(Rule(fault=EndWatch(how=how)))
    with contextlib.suppress(aiohttp.ClientOSError) if how is WatchEnd.RESET else contextlib.nullcontext():
        async with client.watch() as watch:
            assert watch.status == 200
            await check_watch_end(how, watch)
    assert proxy.injected == {how.value: 1}


async def test_a_watch_ends_after_some_time(proxy: FaultProxy, client: Client, direct: Client) -> None:
    proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.EXPIRED, after_seconds=5)))
    began = time.monotonic()
    async with client.watch() as watch:
        await add(direct, "a")
        assert await read_names(watch, 1) == ["a"]
        await check_watch_end(WatchEnd.EXPIRED, watch)
    assert time.monotonic() - began >= 5


@pytest.mark.parametrize("how", WatchEnd)
async def test_open_watches_can_be_ended_from_outside(
    proxy: FaultProxy, client: Client, direct: Client, how: WatchEnd
) -> None:
    async with client.watch() as watch, client.watch() as other:
        await add(direct, "a")
        assert await read_names(watch, 1) == await read_names(other, 1) == ["a"]
        assert proxy.end_watches(how, path="/configmaps$") == 0
        assert proxy.end_watches(how, path="/secrets$") == 2
        await check_watch_end(how, watch)
        await check_watch_end(how, other)
        assert proxy.end_watches(how) == 0
    assert proxy.injected == {how.value: 2}


async def test_events_come_twice_in_their_order(proxy: FaultProxy, client: Client, direct: Client) -> None:
    proxy.rules.add(Rule(fault=RepeatEvents()))
    async with client.watch() as watch:
        await add(direct, "a", "b")
        assert await read_names(watch, 4) == ["a", "a", "b", "b"]
    assert proxy.injected == {"repeated-events": 2}


async def test_late_events_keep_their_order(proxy: FaultProxy, client: Client, direct: Client) -> None:
    proxy.rules.add(Rule(fault=LateEvents(seconds=0.5)))
    async with client.watch() as watch:
        began = time.monotonic()
        await add(direct, "a", "b", "c")
        assert await read_names(watch, 3) == ["a", "b", "c"]
        assert time.monotonic() - began >= 0.5
    assert proxy.injected == {"late-events": 3}


async def test_a_failed_watch_is_passed_on_untouched(proxy: FaultProxy, client: Client) -> None:
    proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.RESET)))
    headers = {"Authorization": "Bearer wrong"}
    async with client.session.get(client.path, params={"watch": "1"}, headers=headers) as answer:
        assert answer.status == 401
    assert not proxy.injected


async def test_a_watch_in_another_format_is_refused(client: Client) -> None:
    accept = {"Accept": "application/vnd.kubernetes.protobuf;stream=watch"}
    async with client.session.get(client.path, params={"watch": "1"}, headers=accept) as answer:
        assert answer.status == 406
        assert "JSON" in (await answer.json())["message"]


async def test_dropping_connections_resets_open_watches(proxy: FaultProxy, client: Client) -> None:
    async with client.watch() as watch:
        proxy.drop_all_connections()
        await check_watch_end(WatchEnd.RESET, watch)
    async with client.get() as answer:
        assert answer.status == 200


async def test_while_paused_connections_are_refused(proxy: FaultProxy, client: Client) -> None:
    async with client.watch() as watch:
        await proxy.pause()
        await check_watch_end(WatchEnd.RESET, watch)
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await client.version()
    assert caught.value.errno == errno.ECONNREFUSED
    await proxy.resume()
    async with client.get() as answer:
        assert answer.status == 200


async def test_an_api_server_that_is_gone_looks_like_a_reset(
    cluster: Cluster, session: aiohttp.ClientSession, namespace: str
) -> None:
    async with FaultProxy(upstream="https://127.0.0.1:1", upstream_ca=cluster.ca, authority=cluster.authority) as proxy:
        with pytest.raises(aiohttp.ClientOSError) as caught:
            await Client(session=session, url=proxy.url, namespace=namespace).version()
        assert "Connect" in proxy.log[-1].error
    assert caught.value.errno == errno.ECONNRESET


async def test_closing_ends_silent_streams_at_once(
    cluster: Cluster, session: aiohttp.ClientSession, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy_to(cluster) as proxy:
        # A server that waited for a user would do so for a minute.
        shutdown = proxy._server.shutdown
        monkeypatch.setattr(proxy._server, "shutdown", lambda timeout: shutdown(60 * timeout))
        client = Client(session=session, url=proxy.url, namespace=namespace)
        proxy.rules.add(Rule(fault=Silence(), methods=("POST",)), Rule(fault=EndWatch(how=WatchEnd.SILENT)))
        creating = asyncio.ensure_future(client.create("a"))
        watch = await session.get(client.path, params={"watch": "1"})
        await soon(lambda: proxy.injected == {"silence": 1, "watch-silent": 1})
        began = time.monotonic()
    assert time.monotonic() - began < 30
    with pytest.raises(aiohttp.ClientOSError):
        await creating
    with pytest.raises(aiohttp.ClientError):
        await watch.content.read()
    watch.close()


async def test_closing_ends_handshakes_that_are_in_progress(cluster: Cluster) -> None:
    async with proxy_to(cluster) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", URL(proxy.url).port)
        assert proxy._listener is not None
        while not proxy._listener._handshakes:
            await asyncio.sleep(0)
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(), SOON) == b""
    writer.close()


@pytest.mark.parametrize("how", [None, WatchEnd.SILENT])
async def test_a_client_that_gives_up_frees_its_connection(
    proxy: FaultProxy, client: Client, how: WatchEnd | None
) -> None:
    if how is not None:
        proxy.rules.add(Rule(fault=EndWatch(how=how)))
    async with client.watch():
        assert proxy.open_connections
    await soon(lambda: not proxy.open_connections and not proxy.open_watches)


async def test_the_kubeconfig_leads_through_the_proxy(proxy: FaultProxy, cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    proxy.write_kubeconfig(path, token=cluster.token)
    assert path.stat().st_mode & 0o777 == 0o600
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == proxy.url
    assert config["users"][0]["user"] == {"token": cluster.token}
