"""The series of ManagedResources."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agent.resource_manager.common.managed_resource_metrics import ManagedResourceCollector, Sources
from kube.objects import Key

T1, T2 = "2025-01-01T12:00:00Z", "2025-01-01T12:05:00Z"
T2_SECONDS = 1735733100.0
PREFIX = "resource_manager_managed_resource"


def condition(type_: str, status: str, reason: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": T1, "lastUpdateTime": T2}


GOOD = [
    condition("ResourcesApplied", "True", "ApplySucceeded"),
    condition("ResourcesHealthy", "True"),
    condition("ResourcesProgressing", "False"),
]


class World:
    """What the metrics are about."""

    def __init__(self) -> None:
        self.managed: dict[Key, dict[str, Any]] = {}
        self.applied: dict[Key, float] = {}
        self.unhealthy: dict[Key, int] = {}
        self.repairs: dict[Key, int] = {}
        self.registry = CollectorRegistry()
        self.collector = ManagedResourceCollector()
        self.registry.register(self.collector)

    def follow(self, limit: int = 100) -> None:
        self.collector.follow(
            Sources(
                managed_resources=self.managed.items,
                last_applied=self.applied.get,
                repairs=lambda name: self.repairs.get(name, 0),
                unhealthy=lambda name: self.unhealthy.get(name, 0),
                progressing=lambda _: 0,
                limit=limit,
            )
        )

    def add(self, name: str, conditions: list[dict[str, str]], objects: int = 0) -> None:
        self.managed[Key("ns", name)] = {"status": {"conditions": conditions, "resources": [{}] * objects}}

    def series(self, metric: str) -> dict[str, float]:
        """By the values of their labels."""
        return {
            "/".join(sample.labels.values()): sample.value
            for family in self.registry.collect()
            if family.name == f"{PREFIX}{metric}"
            for sample in family.samples
        }


@pytest.fixture
def idle() -> World:
    """Nothing is followed yet."""
    return World()


@pytest.fixture
def world(idle: World) -> World:
    idle.follow()
    return idle


def test_who_does_not_lead_reports_nothing(idle: World) -> None:
    idle.add("a", GOOD)
    families = list(idle.registry.collect())
    assert len(families) == 11
    assert [sample for family in families for sample in family.samples] == []


def test_conditions_have_the_series_of_their_status(world: World) -> None:
    world.add("a", [GOOD[0], condition("ResourcesHealthy", "False")])
    assert world.series("_condition") == {
        "ns/a/ResourcesApplied/True": 1,
        "ns/a/ResourcesHealthy/False": 1,
        "ns/a/ResourcesProgressing/Unknown": 1,
    }
    world.add("a", GOOD)
    assert "ns/a/ResourcesHealthy/True" in world.series("_condition")
    assert "ns/a/ResourcesHealthy/False" not in world.series("_condition")


def test_a_managed_resource_that_is_gone_has_no_series(world: World) -> None:
    world.add("a", GOOD, objects=3)
    assert world.series("_objects") == {"ns/a": 3}
    world.managed.clear()
    assert world.series("_objects") == {}
    assert world.series("s_objects") == {"all": 0, "unhealthy": 0, "progressing": 0}


def test_the_last_application_is_what_this_process_saw_or_else_what_the_condition_reports(world: World) -> None:
    world.add("restarted", GOOD)
    world.add("applied", GOOD)
    world.add("failing", [condition("ResourcesApplied", "False", "ApplyFailed")])
    world.add("never", [])
    world.applied.update({Key("ns", "applied"): 1.8e9, Key("ns", "failing"): 1.7e9})
    assert world.series("_last_applied_timestamp_seconds") == {
        "ns/restarted": T2_SECONDS,
        "ns/applied": 1.8e9,
        "ns/failing": 1.7e9,
    }


def test_an_ignored_one_reports_since_when(world: World) -> None:
    world.add("a", [condition("ResourcesApplied", "True", "ManagedResourceIgnored")])
    world.add("b", GOOD)
    assert world.series("_ignored_since_timestamp_seconds") == {"ns/a": T2_SECONDS}
    assert world.series("s_ignored") == {"": 1}
    assert world.series("_last_applied_timestamp_seconds") == {"ns/b": T2_SECONDS}


def test_failing_objects_are_counted(world: World) -> None:
    world.add("a", GOOD, objects=5)
    world.add("b", GOOD, objects=2)
    world.unhealthy[Key("ns", "a")] = 3
    assert world.series("_unhealthy_objects") == {"ns/a": 3, "ns/b": 0}
    assert world.series("s_objects") == {"all": 7, "unhealthy": 3, "progressing": 0}


def test_beyond_the_limit_only_sums_are_reported_and_what_is_wrong_comes_first(idle: World) -> None:
    idle.follow(limit=2)
    for name in "abcd":
        idle.add(name, GOOD, objects=1)
    idle.add("z", [GOOD[0], condition("ResourcesHealthy", "False"), GOOD[2]], objects=1)
    assert idle.series("_objects") == {"ns/a": 1, "ns/z": 1}
    assert idle.series("s_without_series") == {"": 3}
    assert idle.series("s_objects")["all"] == 5
    assert idle.series("s") == {
        "ResourcesApplied/True": 5,
        "ResourcesHealthy/False": 1,
        "ResourcesHealthy/True": 4,
        "ResourcesProgressing/False": 5,
    }


def test_a_limit_of_none_leaves_the_sums(idle: World) -> None:
    idle.follow(limit=0)
    idle.add("a", GOOD)
    assert idle.series("_condition") == {}
    assert idle.series("s_without_series") == {"": 1}


def test_a_condition_of_another_client_that_makes_no_sense_is_no_reason_to_fail(world: World) -> None:
    world.add("a", [{"type": "ResourcesApplied", "status": "True", "lastUpdateTime": "yesterday"}])
    assert world.series("_last_applied_timestamp_seconds") == {}


def test_what_is_repaired_again_and_again_comes_first(idle: World) -> None:
    for name in "abc":
        idle.add(name, GOOD)
    idle.repairs[Key("ns", "c")] = 12
    idle.follow(limit=1)
    assert idle.series("_repairs") == {"ns/c": 12}
