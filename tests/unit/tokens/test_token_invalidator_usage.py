"""Costs of finding out which Secrets Pods use, with any author of the Pods."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from agent.resource_manager.token_invalidator.usage import (
    IN_USE_SECONDS,
    REST,
    InUse,
    Unknown,
    Unused,
    Usage,
)
from kube.objects import Key, Object
from kube.resources import Resource
from kube.runtime.client import Selection


class Pods:
    """A client, and the clock: a list takes so many seconds by namespace."""

    def __init__(self, **seconds: float) -> None:
        self.seconds = seconds
        self.time = 0.0
        self.listed: list[str] = []
        self.used = {name: [f"used{number}" for number in range(60)] for name in seconds}

    def now(self) -> float:
        return self.time

    async def pages(self, _: Resource, selection: Selection, *, limit: int) -> AsyncIterator[list[Object]]:
        self.listed.append(selection.namespace)
        for name in self.used[selection.namespace]:
            yield [{"spec": {"volumes": [{"secret": {"secretName": name}}]}}]
        await asyncio.sleep(0)
        self.time += self.seconds[selection.namespace]


def usage_of(pods: Any) -> Usage:
    return Usage(pods, now=pods.now)


async def test_all_secrets_of_a_namespace_are_looked_up_in_one_list_at_a_time() -> None:
    pods = Pods(a=0.01)
    usage = usage_of(pods)
    names = [Key("a", f"{kind}{number}") for kind in ("used", "unused") for number in range(60)]
    found = await asyncio.gather(*map(usage.of, names))
    assert found == [InUse(IN_USE_SECONDS)] * 60 + [Unused()] * 60
    assert pods.listed == ["a"]


async def test_lists_that_take_long_leave_the_processor_to_others_most_of_the_time() -> None:
    pods = Pods(a=0.4, b=0.4)
    usage = usage_of(pods)
    end = 3600.0
    while pods.time < end:
        for namespace in ("a", "b"):
            for number in range(60):
                await usage.of(Key(namespace, f"used{number}"))
        pods.time += 1.0
    assert len(pods.listed) * 0.4 <= end / REST + 2 * 0.4


async def test_a_namespace_with_small_lists_waits_for_no_other() -> None:
    pods = Pods(large=5.0, small=0.001)
    usage = usage_of(pods)
    await usage.of(Key("large", "unused"))
    assert await usage.of(Key("small", "unused")) == Unused()
    pods.time += 2.0
    assert isinstance(await usage.of(Key("large", "unused")), Unknown)
    assert await usage.of(Key("small", "unused")) == Unused()


async def test_a_secret_counts_as_unused_only_by_what_was_read_just_now() -> None:
    pods = Pods(a=0.4)
    usage = usage_of(pods)
    assert await usage.of(Key("a", "s")) == Unused()
    pods.used["a"].append("s")
    pods.time += 2.0
    found = await usage.of(Key("a", "s"))
    assert isinstance(found, Unknown)
    pods.time += found.seconds
    assert await usage.of(Key("a", "s")) == InUse(IN_USE_SECONDS)
    pods.used["a"].remove("s")
    pods.time += IN_USE_SECONDS + 0.1
    assert await usage.of(Key("a", "s")) == Unused()


async def test_namespaces_without_such_secrets_are_forgotten() -> None:
    pods = Pods(**{f"n{number}": 0.001 for number in range(100)})
    usage = usage_of(pods)
    for number in range(100):
        await usage.of(Key(f"n{number}", "used0"))
        pods.time += 10.0
    assert len(usage._listed) < 10
