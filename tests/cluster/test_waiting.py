"""Waiting for an object: until it is ready, with what is missing as text, or until the API server reports that it is gone."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.faults import EndWatch, Rule, WatchEnd
from kit.objects import config_map, placed
from kit.proxied import proxied
from kit.world import World
from kube.clock import utc_now
from kube.errors import Untrusted
from kube.objects import Key, Object, resource_version, uid
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.cache import Caches
from kube.runtime.client import Client, Selection
from kube.runtime.connection import load_kubeconfig
from kube.runtime.discovery import Discovery
from kube.runtime.transport import Transport
from kube.runtime.waiting import NotInTimeError, Waiting, has_to_go
from kube.x509 import make_ca, pem

PATIENCE = 30.0
HELD = {"metadata": {"finalizers": ["example.com/wait"]}}
FREE = {"metadata": {"finalizers": None}}


@pytest.fixture
async def waiting(client: Client) -> AsyncIterator[Waiting]:
    caches = Caches(client)
    yield Waiting(client=client, caches=caches, discovery=Discovery(client))
    assert not list(caches.stores())  # nothing is watched any more
    await caches.close()


def unready(obj: Object | None) -> str:
    if obj is None:
        return "not there"
    state: str = (obj.get("data") or {}).get("state", "")
    if state == "failed":
        raise ValueError("it failed")
    return "" if state == "ready" else f"state is {state}"


def in_state(state: str) -> Object:
    return config_map("a", {"state": state})


async def test_an_object_is_awaited_and_what_is_missing_reported(world: World, waiting: Waiting) -> None:
    name, reasons = Key(world.namespace, "a"), list[str]()
    seen = {state: asyncio.Event() for state in ("not there", "state is starting")}

    def report(reason: str) -> None:
        reasons.append(reason)
        seen[reason].set()

    ready = asyncio.create_task(waiting.until_ready(CONFIG_MAPS, name, unready, seconds=PATIENCE, report=report))
    await seen["not there"].wait()
    await world.create(config_map("b"))  # of no interest
    await world.create(in_state("starting"))
    await seen["state is starting"].wait()
    await world.patch("ConfigMap", "a", {"data": {"state": "ready"}})
    assert (await ready)["data"] == {"state": "ready"}
    assert reasons == ["not there", "state is starting"]


async def test_what_is_ready_is_returned_at_once(world: World, waiting: Waiting) -> None:
    written = await world.create(in_state("ready"))
    found = await waiting.until_ready(
        CONFIG_MAPS, Key(world.namespace, "a"), unready, seconds=PATIENCE, since=resource_version(written)
    )
    assert uid(found) == uid(written)


async def test_a_failure_ends_the_waiting(world: World, waiting: Waiting) -> None:
    await world.create(in_state("failed"))
    with pytest.raises(ValueError, match="it failed"):
        await waiting.until_ready(CONFIG_MAPS, Key(world.namespace, "a"), unready, seconds=PATIENCE)


async def test_the_end_of_the_time_reports_what_was_missing(world: World, waiting: Waiting) -> None:
    await world.create(in_state("starting"))
    with pytest.raises(NotInTimeError) as caught:
        await waiting.until_ready(CONFIG_MAPS, Key(world.namespace, "a"), unready, seconds=0.5)
    assert str(caught.value) == f"ConfigMap {world.namespace}/a is not ready after 0.5 s: state is starting"


async def test_an_object_is_gone_when_its_finalizers_are(world: World, waiting: Waiting) -> None:
    await world.create({**config_map("a"), "metadata": {"name": "a", **HELD["metadata"]}})
    name, reported = Key(world.namespace, "a"), asyncio.Queue[str]()
    gone = asyncio.create_task(waiting.until_gone(CONFIG_MAPS, name, seconds=PATIENCE, report=reported.put_nowait))
    assert await reported.get() == "it is not being deleted"
    await world.delete("ConfigMap", "a")
    assert await reported.get() == "waits for example.com/wait"
    await world.patch("ConfigMap", "a", FREE)
    await gone


async def test_what_a_silent_watch_does_not_know_of_is_not_gone(world: World, cluster: Cluster, tmp_path: Path) -> None:
    """It was created since, and the watch is there already."""
    name, reported = Key(world.namespace, "a"), asyncio.Queue[str]()
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.SILENT, after_events=1), path="/secrets$"))
        client = Client(transport, user_agent="test")
        waiting = Waiting(client=client, caches=Caches(client), discovery=Discovery(client), together=[SECRETS])
        async with asyncio.timeout(PATIENCE), waiting.keeping(world.namespace):
            await waiting.until_gone(SECRETS, name, seconds=PATIENCE)
            await world.create({**SECRETS.type_meta, "metadata": {"name": "a", **HELD["metadata"]}})
            gone = asyncio.create_task(waiting.until_gone(SECRETS, name, seconds=PATIENCE, report=reported.put_nowait))
            assert await reported.get() == "it is not being deleted"
            await world.delete("Secret", "a")
            assert await reported.get() == "waits for example.com/wait"
            await world.patch("Secret", "a", FREE)
            await gone


async def test_what_a_silent_watch_does_not_know_of_is_found(world: World, cluster: Cluster, tmp_path: Path) -> None:
    name, reported = Key(world.namespace, "a"), asyncio.Queue[str]()
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.SILENT, after_events=1), path="/configmaps$"))
        client = Client(transport, user_agent="test")
        waiting = Waiting(client=client, caches=Caches(client), discovery=Discovery(client))
        ready = asyncio.create_task(
            waiting.until_ready(CONFIG_MAPS, name, unready, seconds=PATIENCE, report=reported.put_nowait)
        )
        assert await reported.get() == "not there"
        await world.create(in_state("ready"))
        assert (await ready)["data"] == {"state": "ready"}


async def test_what_a_silent_watch_missed_is_read_before_the_time_is_over(
    world: World, cluster: Cluster, tmp_path: Path
) -> None:
    name, reported, limit = Key(world.namespace, "a"), asyncio.Queue[str](), asyncio.timeout(PATIENCE)
    await world.create(in_state("starting"))
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.SILENT, after_events=2), path="/configmaps$"))
        client = Client(transport, user_agent="test")
        waiting = Waiting(client=client, caches=Caches(client), discovery=Discovery(client))
        ready = asyncio.create_task(
            waiting.until_ready(CONFIG_MAPS, name, unready, seconds=0, limit=limit, report=reported.put_nowait)
        )
        assert await reported.get() == "state is starting"
        await world.patch("ConfigMap", "a", {"data": {"state": "ready"}})
        limit.reschedule(0)
        assert (await ready)["data"] == {"state": "ready"}


async def test_another_object_of_the_same_name_is_not_the_one_that_goes(world: World, waiting: Waiting) -> None:
    before = uid(await world.create(config_map("a")))
    await world.delete("ConfigMap", "a")
    name = Key(world.namespace, "a")
    after = await world.create(placed(config_map("a"), world.namespace))
    await waiting.until_gone(CONFIG_MAPS, name, seconds=PATIENCE, expected_uid=before)
    with pytest.raises(NotInTimeError, match="it is not being deleted"):
        await waiting.until_gone(CONFIG_MAPS, name, seconds=0.5, expected_uid=uid(after))


async def test_of_a_kind_that_does_not_exist_nothing_is_left(world: World, waiting: Waiting) -> None:
    unknown = Resource("nothing.example.com", "v1", "Nothing", "nothings", namespaced=True)
    await waiting.until_gone(unknown, Key(world.namespace, "a"), seconds=PATIENCE)


async def test_all_that_counts_is_waited_for(world: World, waiting: Waiting) -> None:
    """Also what comes meanwhile; what is left is named, with what it waits for."""
    selection, reported = Selection(world.namespace, label_selector="of=all"), asyncio.Queue[str]()
    for name in ("a", "b"):
        await world.create(config_map(name, labels={"of": "all"}))
    await world.create(config_map("kept", {"kept": "yes"}, labels={"of": "all"}))
    await world.create(config_map("other"))
    gone = asyncio.create_task(
        waiting.until_none(
            CONFIG_MAPS,
            selection,
            seconds=PATIENCE,
            missing=lambda each: "" if "kept" in (each.get("data") or {}) else has_to_go(each),
            report=reported.put_nowait,
        )
    )
    a, b, c = (f"{world.namespace}/{name}" for name in "abc")
    assert await reported.get() == f"{a} (it is not being deleted), {b} (it is not being deleted)"
    await world.create(config_map("c", labels={"of": "all"}))
    await world.patch("ConfigMap", "c", HELD)
    await world.delete("ConfigMap", "a")
    await world.delete("ConfigMap", "b")
    while await reported.get() != f"{c} (it is not being deleted)":
        continue
    await world.delete("ConfigMap", "c")
    assert await reported.get() == f"{c} (waits for example.com/wait)"
    await world.patch("ConfigMap", "c", FREE)
    await gone


async def test_of_a_kind_that_does_not_exist_none_is_left(world: World, waiting: Waiting) -> None:
    unknown = Resource("nothing.example.com", "v1", "Nothing", "nothings", namespaced=True)
    await waiting.until_none(unknown, Selection(world.namespace), seconds=PATIENCE)


async def test_a_certificate_that_is_not_accepted_ends_the_waiting(world: World, cluster: Cluster) -> None:
    """At the start, and when it is replaced meanwhile."""
    trusted, name = load_kubeconfig(cluster.kubeconfig), Key(world.namespace, "a")
    foreign = pem(make_ca("foreign", now=utc_now(), lifetime=timedelta(hours=1)).certificate).decode()
    untrusting = replace(trusted, tls=ssl.create_default_context(cadata=foreign), identity=())
    await world.create(in_state("starting"))
    for connection in (untrusting, trusted):
        reasons: asyncio.Queue[str] = asyncio.Queue()
        async with Transport(connection) as transport:
            client = Client(transport, user_agent="test")
            waiting = Waiting(client=client, caches=Caches(client), discovery=Discovery(client))
            ready = asyncio.create_task(
                waiting.until_ready(CONFIG_MAPS, name, unready, seconds=PATIENCE, report=reasons.put_nowait)
            )
            if connection is trusted:
                assert await reasons.get() == "state is starting"
                await world.patch("ConfigMap", "a", {"data": {"state": "watched"}})
                assert await reasons.get() == "state is watched"
                transport.replace(untrusting)
            with pytest.raises(Untrusted, match="certificate is not accepted"):
                await ready


async def test_what_is_kept_is_watched_once(world: World, client: Client) -> None:
    """And what was written since the watch is waited for: it may not have arrived."""
    caches, name = Caches(client), Key(world.namespace, "a")
    waiting = Waiting(client=client, caches=caches, discovery=Discovery(client), together=[CONFIG_MAPS])
    await world.create(in_state("ready"))
    async with waiting.keeping(world.namespace):
        await waiting.until_ready(CONFIG_MAPS, name, unready, seconds=PATIENCE)
        (store,) = caches.stores()
        since = resource_version(await world.patch("ConfigMap", "a", {"data": {"state": "ready", "more": "x"}}))
        found = await waiting.until_ready(CONFIG_MAPS, name, unready, seconds=PATIENCE, since=since)
        assert (found["data"] or {})["more"] == "x"
        assert list(caches.stores()) == [store]
    assert not list(caches.stores())
    await caches.close()
