"""Which plans are kept in memory, and that large ones let others go first."""

import base64
from dataclasses import replace
from typing import Any

import orjson
import pytest

from agent.resource_manager.managed_resource import plans as module
from agent.resource_manager.managed_resource.plans import LargePlanError, Plans
from agent.resource_manager.managed_resource.source import SecretVersion
from gardener.managed_resource.plan import unrestricted
from kit import objects
from kit.objects import Served, config_map, secret
from kube.errors import Unreachable
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS, Resource

LARGE = "x" * (1 << 20)


class Secrets:
    """Where ManagedResources come from: one Secret each, of the same name."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.read: list[str] = []

    def secret_version(self, _wanted: Key) -> SecretVersion:
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


async def test_a_large_plan_lets_others_go_first_once(plans: Plans, secrets: Secrets) -> None:
    secrets.texts = {"large": LARGE, "small": "x"}
    with pytest.raises(LargePlanError):
        await plans.of(managed_resource("large"), in_turn=True)
    await plans.of(managed_resource("small"), in_turn=True)
    [wanted] = (await plans.of(managed_resource("large"), in_turn=True)).wanted()
    assert len(wanted.manifest) > len(LARGE)


async def test_who_needs_all_claims_does_not_wait_for_turns(plans: Plans, secrets: Secrets) -> None:
    secrets.texts = {"large": LARGE}
    assert (await plans.of(managed_resource("large"))).wanted()


async def test_plans_that_were_not_used_for_longest_are_made_anew_when_needed(
    plans: Plans, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT", 5 * len(LARGE) // 2)
    secrets.texts = dict.fromkeys("abc", LARGE)
    for name in "abac":
        await plans.of(managed_resource(name))
    assert secrets.read == ["a", "b", "c"]
    assert plans.last(Key("n", "a")) is not None
    assert plans.last(Key("n", "b")) is None
    # Its claims are known all the same, and whose kinds have changed is planned anew to see whether it is affected.
    assert plans.has_plan(Key("n", "b"))
    assert Key("n", "b") in plans.with_objects_of("example.com")
    await plans.of(managed_resource("b"))
    assert secrets.read == ["a", "b", "c", "b"]


async def test_a_secret_that_is_named_many_times_is_read_once_and_counts_each_time(
    plans: Plans, secrets: Secrets
) -> None:
    secrets.texts = {"mr": LARGE}
    plan = await plans.of(managed_resource("mr", references=50))
    assert secrets.read == ["mr"]
    assert "unfold to more than 33554432 bytes; use several ManagedResources" in plan.decode_errors[0]
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
async def test_a_plan_is_made_anew_when_its_kinds_are_served_otherwise(
    plans: Plans, secrets: Secrets, discovery: Any, made: int
) -> None:
    secrets.texts = {"mr": "x"}
    await plans.of(managed_resource("mr"))
    plans.discovery = discovery
    await plans.of(managed_resource("mr"))
    assert len(secrets.read) == made
