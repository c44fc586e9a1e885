"""A cache of a kind whose CRD goes and comes back follows, quietly."""

import asyncio
import contextlib
import functools
import uuid
from collections.abc import AsyncIterator, Iterator, MutableMapping
from itertools import pairwise
from typing import Any

import pytest
import structlog

from devcluster.audit import Audit, Call
from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.kinds import custom_resource, definition, definition_path
from kit.objects import obj
from kit.world import World
from kube.errors import KindNotServed, NoStatus, NotFound, TooManyRequests
from kube.objects import Key, Object, condition
from kube.resources import Resource
from kube.runtime.cache import Caches, Change, Store, View, without_managed_fields
from kube.runtime.client import Client

MANY = 16
"""Failures after which watches wait as long as they ever do."""


@pytest.fixture
def kind(cluster: Cluster) -> Iterator[Resource]:
    """A kind of the test's own; its CRD goes after the test."""
    resource = custom_resource(f"t{uuid.uuid4().hex[:10]}.example.com", "Widget")
    yield resource
    with contextlib.suppress(NotFound):
        cluster.api.delete(definition_path(resource))


@pytest.fixture
async def caches(client: Client) -> AsyncIterator[Caches]:
    """With the timings that the programs have."""
    caches = Caches(client)
    yield caches
    await caches.close()


def is_quiet(logged: list[MutableMapping[str, Any]]) -> bool:
    """Whether only what changed was logged, not each attempt.

    The API server may serve a new kind, forget it for a moment and serve it again, so it may change more than once.
    """
    events = [entry["event"] for entry in logged]
    return all(entry["log_level"] == "info" for entry in logged) and all(a != b for a, b in pairwise(events))


async def define(world: World, kind: Resource) -> None:
    """Returns as soon as the CRD reports that its kind is established."""
    await world.create(definition(kind))

    async def is_established() -> bool:
        crd = await world.get("CustomResourceDefinition", f"widgets.{kind.group}")
        return (condition(crd, "Established") or {}).get("status") == "True"

    await soon(is_established)


async def fill(world: World, kind: Resource, *names: str) -> set[Key]:
    for name in names:
        # A CRD is established a moment before its kind is served.
        create = functools.partial(world.create, obj(kind, name, spec={"a": "b"}), kind)
        await soon(create, f"{name} to be created", passing=(KindNotServed, NoStatus, TooManyRequests))
    return {Key(world.namespace, name) for name in names}


def keys(store: Store[Object]) -> set[Key]:
    return {key for key, _ in store.items()}


async def undefine(world: World, kind: Resource) -> None:
    await world.delete("CustomResourceDefinition", f"widgets.{kind.group}")
    await world.until_gone("CustomResourceDefinition", f"widgets.{kind.group}")


async def test_a_store_empties_with_its_crd_and_fills_again(
    *, world: World, caches: Caches, kind: Resource, user_agent: str, audit: Audit
) -> None:
    await define(world, kind)
    first = await fill(world, kind, "a", "b", "c")
    changes: list[Change[Object]] = []
    with structlog.testing.capture_logs() as logged:
        async with caches.use(View(kind, without_managed_fields)) as store:
            store.subscribe(changes.append)
            await soon(lambda: keys(store) == first, "the objects are in the store")

            await undefine(world, kind)
            await soon(lambda: not keys(store), "the store is empty")
            assert {change.key for change in changes if change.new is None} == first
            mark = audit.mark()

            def attempts() -> list[Call]:
                return audit.calls(since=mark, user_agent=user_agent, watches=True)

            # The API server may serve the kind a moment longer than it has its CRD, or stop before the watch ends.
            await soon(lambda: [call.uri for call in attempts()][-1:] == ["/apis"], "kinds are queried")
            await soon(lambda: logged and "failed" in logged[-1]["event"], "the watch has failed")
            before = len(logged)
            mark = audit.mark()
            await asyncio.sleep(3)
            await soon(attempts, "it is tried again")
            # One attempt after at most 0.2, 0.4, 0.8, 1.6 … seconds.
            while_away = attempts()
            assert len(while_away) <= 6
            assert {(call.uri, call.status) for call in while_away} == {("/apis", 200)}
            assert len(logged) == before
            assert store.synced.is_set()

            await define(world, kind)
            second = await fill(world, kind, "b", "d")
            caches.wake(kind.group)
            await soon(lambda: keys(store) == second, "the store is filled again")
            assert [change.key for change in changes if change.new is not None][-2:] == sorted(second)

            third = await fill(world, kind, "e")
            await soon(lambda: keys(store) == second | third, "the watch goes on")
    assert is_quiet(logged), logged


async def test_a_store_of_a_kind_that_does_not_exist_yet_is_empty_and_fills_when_it_comes(
    world: World, caches: Caches, kind: Resource
) -> None:
    with structlog.testing.capture_logs() as logged:
        async with caches.use(View(kind, without_managed_fields)) as store:
            assert len(store) == 0
            await asyncio.sleep(2)  # the back-off has grown
            await define(world, kind)
            caches.wake(kind.group)
            wanted = await fill(world, kind, "a")
            await soon(lambda: keys(store) == wanted, "the store is filled")
    assert is_quiet(logged), logged


async def test_a_wake_up_that_comes_too_early_shortens_the_waiting(
    world: World, caches: Caches, kind: Resource
) -> None:
    view = View(kind, without_managed_fields)
    with structlog.testing.capture_logs() as logged:
        async with caches.use(view) as store:
            [watcher] = caches._running[view].watchers
            watcher._failures = MANY  # as if it had been tried in vain for long
            await soon(lambda: watcher._failures > MANY, "the next attempt fails")
            await asyncio.sleep(1)  # it has failed; the next one comes after 15 seconds at least
            caches.wake(kind.group)
            await define(world, kind)
            # A waiter that is woken a moment too early must not fall back into a long wait.
            wanted = await fill(world, kind, "a")
            await soon(lambda: keys(store) == wanted, "the store is filled", seconds=12)
    assert is_quiet(logged), logged
