"""A cache of a kind whose CRD goes and comes back follows, quietly."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from itertools import pairwise
from typing import Any

import pytest
import structlog
from lenient_kinds import definition

from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kube.cache import Caches, Change, Store, View, without_managed_fields
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.errors import NotFound, TooManyRequests
from kube.objects import Key, Object, condition
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MANY = 16
"""Failures after which watches wait as long as they ever do."""


@pytest.fixture
def kind(cluster: Cluster) -> Iterator[Resource]:
    """A kind of the test's own; its CRD goes after the test."""
    resource = Resource(f"t{uuid.uuid4().hex[:10]}.example.com", "v1", "Widget", "widgets", namespaced=True)
    yield resource
    with contextlib.suppress(NotFound):
        cluster.api.delete(f"{CRDS}/widgets.{resource.group}")


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield Client(transport, user_agent="cache-and-crds-setup")


@pytest.fixture
def user_agent() -> str:
    return f"cache-and-crds-{uuid.uuid4()}"


@pytest.fixture
async def caches(cluster: Cluster, user_agent: str) -> AsyncIterator[Caches]:
    """With the timings that the programs have."""
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        caches = Caches(Client(transport, user_agent=user_agent))
        yield caches
        await caches.close()


def is_quiet(logged: list[MutableMapping[str, Any]]) -> bool:
    """Whether only what changed was told, not each attempt.

    The API server may serve a new kind, forget it for a moment and serve it again, so it may change more than once.
    """
    events = [entry["event"] for entry in logged]
    return all(entry["log_level"] == "info" for entry in logged) and all(a != b for a, b in pairwise(events))


async def until(what: str, holds: Callable[[], object], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {seconds} s in vain: {what}")
        await asyncio.sleep(0.02)


async def define(client: Client, kind: Resource) -> None:
    """Returns as soon as the CRD says that its kind is established."""
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind))
    async with asyncio.timeout(60):
        while True:
            crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, f"widgets.{kind.group}")
            if (condition(crd, "Established") or {}).get("status") == "True":
                return
            await asyncio.sleep(0.01)


async def fill(client: Client, kind: Resource, namespace: str, *names: str) -> set[Key]:
    for name in names:
        obj = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"a": "b"},
        }
        async with asyncio.timeout(60):
            while True:  # a CRD is established a moment before its kind is served
                try:
                    await client.create(kind, obj)
                    break
                except (NotFound, TooManyRequests):
                    await asyncio.sleep(0.05)
    return {Key(namespace, name) for name in names}


def keys(store: Store[Object]) -> set[Key]:
    return {key for key, _ in store.items()}


async def undefine(client: Client, kind: Resource) -> None:
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"widgets.{kind.group}")
    with contextlib.suppress(NotFound):
        async with asyncio.timeout(60):
            while True:
                await client.get(CUSTOM_RESOURCE_DEFINITIONS, f"widgets.{kind.group}")
                await asyncio.sleep(0.02)


async def test_a_store_empties_with_its_crd_and_fills_again(
    *, client: Client, caches: Caches, kind: Resource, namespace: str, user_agent: str, audit: Audit
) -> None:
    await define(client, kind)
    first = await fill(client, kind, namespace, "a", "b", "c")
    changes: list[Change[Object]] = []
    with structlog.testing.capture_logs() as logged:
        async with caches.use(View(kind, without_managed_fields)) as store:
            store.subscribe(changes.append)
            await until("the objects are in the store", lambda: keys(store) == first)

            await undefine(client, kind)
            await until("the store is empty", lambda: not keys(store))
            assert {change.key for change in changes if change.new is None} == first
            mark = audit.mark()

            def attempts() -> list[Call]:
                return audit.calls(since=mark, user_agent=user_agent, watches=True)

            # The API server may serve the kind a moment longer than it has its CRD.
            await until("it is told that there is no such kind", lambda: 404 in {call.status for call in attempts()})
            await until("the watch has failed", lambda: logged and "failed" in logged[-1]["event"])
            told = len(logged)
            mark = audit.mark()
            await asyncio.sleep(3)
            await until("it is tried again", attempts)
            # One attempt after at most 0.2, 0.4, 0.8, 1.6 … seconds.
            while_away = attempts()
            assert len(while_away) <= 6
            assert {call.status for call in while_away} == {404}
            assert len(logged) == told
            assert store.synced.is_set()

            await define(client, kind)
            second = await fill(client, kind, namespace, "b", "d")
            caches.wake(kind.group)
            await until("the store is filled again", lambda: keys(store) == second)
            assert [change.key for change in changes if change.new is not None][-2:] == sorted(second)

            third = await fill(client, kind, namespace, "e")
            await until("the watch goes on", lambda: keys(store) == second | third)
    assert is_quiet(logged), logged


async def test_a_store_of_a_kind_that_does_not_exist_yet_is_empty_and_fills_when_it_comes(
    client: Client, caches: Caches, kind: Resource, namespace: str
) -> None:
    with structlog.testing.capture_logs() as logged:
        async with caches.use(View(kind, without_managed_fields)) as store:
            assert len(store) == 0
            await asyncio.sleep(2)  # the back-off has grown
            await define(client, kind)
            caches.wake(kind.group)
            wanted = await fill(client, kind, namespace, "a")
            await until("the store is filled", lambda: keys(store) == wanted)
    assert is_quiet(logged), logged


async def test_a_wake_up_that_comes_too_early_shortens_the_waiting(
    client: Client, caches: Caches, kind: Resource, namespace: str
) -> None:
    view = View(kind, without_managed_fields)
    with structlog.testing.capture_logs() as logged:
        async with caches.use(view) as store:
            [watcher] = caches._running[view].watchers
            watcher._failures = MANY  # as if it had been tried in vain for long
            await until("the next attempt fails", lambda: watcher._failures > MANY)
            await asyncio.sleep(1)  # it has failed; the next one comes after 15 seconds at least
            caches.wake(kind.group)
            await define(client, kind)
            # Whoever is woken a moment too early must not fall back into a long wait.
            wanted = await fill(client, kind, namespace, "a")
            await until("the store is filled", lambda: keys(store) == wanted, seconds=12)
    assert is_quiet(logged), logged
