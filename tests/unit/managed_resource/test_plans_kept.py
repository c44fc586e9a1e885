"""Which plans are kept in memory, and that large ones let others go first."""

import asyncio
import base64
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from agent.resource_manager.managed_resource import plans as module
from agent.resource_manager.managed_resource.plans import LargePlanError, Plans
from agent.resource_manager.managed_resource.source import SecretVersion
from gardener.managed_resource.plan import Plan, unrestricted
from kit import objects
from kit.objects import Served, config_map, secret
from kube.errors import Unreachable
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, Resource

LARGE = random.Random(1).randbytes(1 << 19).hex()
"""Compresses to half its size."""


class Secrets:
    """Where ManagedResources come from: one Secret each, of the same name."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.read: list[str] = []

    async def secret_version(self, _wanted: Key) -> SecretVersion:
        return SecretVersion("u", 1)

    async def read_secret(self, wanted: Key) -> Object:
        self.read.append(wanted.name)
        document = config_map(str(wanted), data={"k": self.texts[wanted.name]})
        return secret(str(wanted), data={"a.json": base64.b64encode(orjson.dumps(document)).decode()})

    def release_secret(self, _wanted: Key) -> None:
        pass


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def plans(secrets: Secrets) -> Plans:
    stand_ins: Any = {"source": secrets, "discovery": Served(CONFIG_MAPS)}
    return Plans(**stand_ins, managed_by="m", only_workloads=False, restriction=lambda _: unrestricted)


def managed_resource(name: str, *, references: int = 1) -> Object:
    return objects.managed_resource(f"n/{name}", spec={"secretRefs": [{"name": name}] * references})


def in_namespace(name: str) -> Object:
    return objects.managed_resource(name, spec={"secretRefs": [{"name": name.partition("/")[2]}]})


async def planned(plans: Plans, name: str, *, references: int = 1) -> Plan:
    """In the second turn if it is large."""
    try:
        return await plans.of(managed_resource(name, references=references))
    except LargePlanError:
        return await plans.of(managed_resource(name, references=references))


async def test_a_large_plan_lets_others_go_first_once(plans: Plans, secrets: Secrets) -> None:
    secrets.texts = {"large": LARGE, "small": "x"}
    with pytest.raises(LargePlanError):
        await plans.of(managed_resource("large"))
    await plans.of(managed_resource("small"))
    [wanted] = (await plans.of(managed_resource("large"))).wanted()
    assert wanted.size > len(LARGE)


class Busy:
    """A thread that computes nothing until it is let go."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def compute(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await self.goes_on.wait()
        return function(*args, **kwargs)


async def test_while_large_plans_are_made_no_other_waits_and_no_more_workers_are_taken(
    plans: Plans, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = Busy()
    monkeypatch.setattr(module, "_LARGE_PLANS", thread)
    large = [f"large-{number}" for number in range(4)]
    secrets.texts = {**dict.fromkeys(large, LARGE), "small": "x", "off-the-loop": "x" * 100_000}
    for name in large:
        with pytest.raises(LargePlanError) as first:
            await plans.of(managed_resource(name))
        assert first.value.seconds == 0
    made = [asyncio.create_task(plans.of(managed_resource(name))) for name in large[:2]]
    while len(plans._large) < len(made):
        await asyncio.sleep(0.01)
    for name in large[2:]:
        secrets.read.clear()
        with pytest.raises(LargePlanError) as again:
            await plans.of(managed_resource(name))
        assert again.value.seconds > 0
        assert secrets.read == []  # to look again costs little
    for name in ("small", "off-the-loop"):
        assert (await plans.of(managed_resource(name))).is_complete
    thread.goes_on.set()
    for plan in await asyncio.gather(*made):
        assert plan.is_complete
    for name in large[2:]:
        assert (await plans.of(managed_resource(name))).is_complete


async def test_while_another_namespace_waits_a_namespace_makes_one_large_plan_at_a_time(
    plans: Plans, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = Busy()
    monkeypatch.setattr(module, "_LARGE_PLANS", thread)
    first, second, other = "n/first", "n/second", "other/mr"
    secrets.texts = dict.fromkeys(("first", "second", "mr"), LARGE)
    for name in (first, second, other):
        with pytest.raises(LargePlanError):
            await plans.of(in_namespace(name))
    made = [asyncio.create_task(plans.of(in_namespace(first)))]
    while len(plans._large) < len(made):
        await asyncio.sleep(0.01)
    with pytest.raises(LargePlanError):
        await plans.of(in_namespace(second))
    made.append(asyncio.create_task(plans.of(in_namespace(other))))
    while len(plans._large) < len(made):
        await asyncio.sleep(0.01)
    thread.goes_on.set()
    await asyncio.gather(*made)
    assert (await plans.of(in_namespace(second))).is_complete


async def test_what_waits_no_longer_keeps_no_namespace_waiting(
    plans: Plans, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = Busy()
    monkeypatch.setattr(module, "_LARGE_PLANS", thread)
    first, second, left = "n/first", "n/second", "other/left"
    secrets.texts = dict.fromkeys(("first", "second", "left"), LARGE)
    for name in (left, first, second):
        with pytest.raises(LargePlanError):
            await plans.of(in_namespace(name))
    monkeypatch.setattr(module, "_WAITS_SECONDS", 0.01)
    await asyncio.sleep(0.1)
    made = [asyncio.create_task(plans.of(in_namespace(name))) for name in (first, second)]
    await asyncio.sleep(0.5)
    assert [each.done() for each in made] == [False, False]
    thread.goes_on.set()
    await asyncio.gather(*made)


async def test_plans_that_were_not_used_for_longest_are_recreated_when_needed(
    plans: Plans, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT", 5 * len(LARGE) // 4)
    secrets.texts = dict.fromkeys("abc", LARGE)
    for name in "abac":
        await planned(plans, name)
    assert list(dict.fromkeys(secrets.read)) == ["a", "b", "c"]
    assert plans.last(Key("n", "a")) is not None
    assert plans.last(Key("n", "b")) is None
    # Its claims are known all the same, and whose kinds have changed is planned again to see whether it is affected.
    assert plans.has_plan(Key("n", "b"))
    assert Key("n", "b") in plans.with_objects_of("example.com")
    secrets.read.clear()
    await planned(plans, "b")
    assert set(secrets.read) == {"b"}


async def test_a_secret_that_is_named_many_times_is_read_once_and_counts_each_time(
    plans: Plans, secrets: Secrets
) -> None:
    secrets.texts = {"mr": LARGE}
    plan = await planned(plans, "mr", references=50)
    assert secrets.read == ["mr"] * 2  # in both turns
    assert "have more than 33554432 bytes; use several ManagedResources" in plan.decode_errors[0]
    assert "in 'a.json' in secret 'n/mr'" in plan.decode_errors[0]


class Unanswered(Served):
    async def find(self, api_version: str, kind: str) -> Resource:
        raise Unreachable(f"{api_version} {kind}: no answer")


@pytest.mark.parametrize(
    ("discovery", "made"),
    [
        (Served(CONFIG_MAPS), 1),
        (Served(replace(CONFIG_MAPS, plural="maps")), 2),
        (Served(), 2),
        (Unanswered(), 1),  # the next call to the cluster shows that
    ],
    ids=["as before", "otherwise", "not at all", "unknown"],
)
async def test_a_plan_is_recreated_when_its_kinds_are_served_otherwise(
    plans: Plans, secrets: Secrets, discovery: Any, made: int
) -> None:
    secrets.texts = {"mr": "x"}
    await plans.of(managed_resource("mr"))
    plans.discovery = discovery
    await plans.of(managed_resource("mr"))
    assert len(secrets.read) == made
