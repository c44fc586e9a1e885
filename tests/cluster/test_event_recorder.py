"""The event recorder on a real API server: counting up, missing rights, expiry."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from devcluster.cluster import Cluster
from kit.objects import config_map, obj, rule
from kit.rbac import grant, until_granted
from kit.world import connected
from kube.objects import Key, Object, key
from kube.resources import CLUSTER_ROLES, CONFIG_MAPS, EVENTS
from kube.runtime.client import Client, Selection
from kube.runtime.events import EventRecorder


@contextlib.asynccontextmanager
async def recording(client: Client) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(client, component="test")
    running = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.fixture
async def about(client: Client, namespace: str) -> Object:
    """The object that events are about."""
    return await client.create(CONFIG_MAPS, config_map("thing", namespace=namespace))


async def events_of(client: Client, namespace: str) -> list[dict[str, Any]]:
    return await client.list(EVENTS, Selection(namespace=namespace))


async def test_a_repeated_event_is_counted_up(client: Client, namespace: str, about: Object) -> None:
    async with recording(client) as recorder:
        for _ in range(3):
            recorder.event(about, "Warning", "Failed", "it did not work")
            await recorder.drain(60)
        recorder.event(about, "Normal", "Applied", "it did")
        await recorder.drain(60)
    events = await events_of(client, namespace)
    assert {(e["type"], e["reason"], e["message"], e["count"]) for e in events} == {
        ("Warning", "Failed", "it did not work", 3),
        ("Normal", "Applied", "it did", 1),
    }
    assert {e["involvedObject"]["uid"] for e in events} == {about["metadata"]["uid"]}


async def test_an_event_that_has_expired_is_rewritten(client: Client, namespace: str, about: Object) -> None:
    async with recording(client) as recorder:
        recorder.event(about, "Normal", "Applied", "it did")
        await recorder.drain(60)
        await client.delete_collection(EVENTS, Selection(namespace=namespace))
        recorder.event(about, "Normal", "Applied", "it did")
        await recorder.drain(60)
    assert [e["count"] for e in await events_of(client, namespace)] == [2]


async def test_who_may_only_create_events_creates_repeats_again(
    cluster: Cluster, client: Client, namespace: str, about: Object
) -> None:
    grant(cluster, namespace, rule("", "events", "create"), namespace=namespace)
    await asyncio.to_thread(until_granted, cluster, namespace, "create", "events", namespace=namespace)
    async with connected(cluster.kubeconfig_for(namespace)) as allowed, recording(allowed) as recorder:
        for _ in range(2):
            recorder.event(about, "Normal", "Applied", "it did")
            await recorder.drain(60)
    assert sorted(e["count"] for e in await events_of(client, namespace)) == [1, 2]


async def test_events_of_cluster_scoped_objects_with_odd_names_are_accepted(client: Client, namespace: str) -> None:
    role = obj(CLUSTER_ROLES, f"system:{namespace}:Odd_Name")
    async with recording(client) as recorder:
        recorder.event(role, "Normal", "Applied", "ü" * 2000)
        await recorder.drain(60)
    found = [e for e in await events_of(client, "default") if e["involvedObject"]["name"] == role["metadata"]["name"]]
    assert [key(e).namespace for e in found] == ["default"]
    await client.delete(EVENTS, Key("default", key(found[0]).name))
