"""What the condition of a Seed reports of its components, and when it stays as it is."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from agent.gardenlet.seed.care.rules.condition import found_in, wanted
from agent.gardenlet.seed.care.stores import checked
from kube.clock import format_time
from kube.conditions import Condition
from kube.objects import Key, Object, key

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
TYPE = "SeedSystemComponentsHealthy"
GOOD = Condition(TYPE, "True", "SystemComponentsRunning", "All system components are healthy.")


def managed(name: str, *, namespace: str = "garden", healthy: str = "True", observed: int = 1) -> Object:
    statuses = {"ResourcesApplied": "True", "ResourcesHealthy": healthy, "ResourcesProgressing": "False"}
    conditions = [{"type": type_, "status": status, "reason": f"Of-{name}"} for type_, status in statuses.items()]
    return {
        "metadata": {"namespace": namespace, "name": name, "generation": 1},
        "status": {"observedGeneration": observed, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("managed_resources", "unanswered", "missing", "status", "reason"),
    [
        ([], "", {}, "True", GOOD.reason),
        ([managed("a"), managed("b")], "", {}, "True", GOOD.reason),
        # The first by namespace and name.
        ([managed("b", healthy="False"), managed("a", healthy="False")], "", {}, "False", "Of-a"),
        (
            [managed("a", namespace="istio-system", healthy="False"), managed("b", healthy="False")],
            "",
            {},
            "False",
            "Of-b",
        ),
        # What was written reports nothing yet, be it good or bad.
        ([managed("a"), managed("b")], "a", {}, "Progressing", "ManagedResourceNotReported"),
        ([managed("a", healthy="False")], "a", {}, "Progressing", "ManagedResourceNotReported"),
        ([managed("a"), managed("b", healthy="False")], "a", {}, "False", "Of-b"),
        ([managed("a", observed=0)], "a", {}, "False", "OutdatedStatus"),
        ([managed("a")], "", {"x": ["deny-all"]}, "False", "NetworkPoliciesMissing"),
        ([managed("a")], "a", {"x": ["deny-all"]}, "False", "NetworkPoliciesMissing"),
        ([managed("a", healthy="False")], "", {"x": ["deny-all"]}, "False", "Of-a"),
    ],
)
def test_the_first_problem_counts_then_what_is_not_reported(
    managed_resources: Sequence[Object],
    unanswered: str,
    missing: Mapping[str, Sequence[str]],
    status: str,
    reason: str,
) -> None:
    found = found_in(
        managed_resources,
        missing_policies=missing,
        is_answered=lambda managed_resource: key(managed_resource).name != unanswered,
        now=NOW,
    )
    assert (found.type, found.status, found.reason) == (TYPE, status, reason)


def test_missing_policies_are_named_up_to_a_limit() -> None:
    missing = {f"n{number:02}": ["deny-all", "allow-to-dns"] for number in range(12)}
    found = found_in([], missing_policies=missing, is_answered=lambda _: True, now=NOW)
    assert "n00 (deny-all, allow-to-dns), n01 " in found.message
    assert "n09 (deny-all, allow-to-dns), and in 2 more; " in found.message


WAITING = Condition(TYPE, "Progressing", "ManagedResourceNotReported", "m")
BAD = Condition(TYPE, "False", "Broken", "m")


@pytest.mark.parametrize(
    ("present", "found", "threshold", "status"),
    [
        (None, GOOD, None, "True"),
        ("False", GOOD, 60.0, "True"),
        (None, BAD, 60.0, "False"),
        ("True", BAD, None, "False"),
        ("True", BAD, 60.0, "Progressing"),
        (None, WAITING, None, "Progressing"),
        ("True", WAITING, None, "Progressing"),
        ("Progressing", WAITING, None, "Progressing"),
        # What was wrong may be so still.
        ("False", WAITING, None, None),
    ],
)
def test_what_is_written(present: str | None, found: Condition, threshold: float | None, status: str | None) -> None:
    time = format_time(NOW - timedelta(hours=1))
    old = {"type": TYPE, "status": present, "reason": "Broken", "message": "m", "lastTransitionTime": time}
    seed = {"status": {"conditions": [old] if present else []}}
    written = wanted(seed, found, threshold=threshold, now=NOW)
    assert (written and written.status) == status


def test_managed_resources_without_a_class_do_not_count() -> None:
    one = {**managed("a"), "spec": {"class": "seed", "secretRefs": [{"name": "s"}]}}
    kept = checked(one)
    assert kept is not None
    assert key(kept) == Key("garden", "a")
    assert kept["status"] == one["status"]
    assert checked({**one, "spec": {"secretRefs": []}}) is None
    assert checked({**one, "spec": {"class": ""}}) is None


def test_the_monitoring_counts_for_the_one_condition_of_a_seed() -> None:
    one = {**managed("prometheus-seed"), "spec": {"class": "seed"}}
    labels = {"care.gardener.cloud/condition-type": "ObservabilityComponentsHealthy"}
    assert checked({**one, "metadata": {**one["metadata"], "labels": labels}}) == checked(one)
