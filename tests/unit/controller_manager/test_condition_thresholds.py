"""What was true is progressing for a while before it is bad; and the phase that sums up a Seed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.conditions import progressing_until, softened
from gardener.garden.seeds import phase_of
from kube.clock import format_time
from kube.conditions import Condition, with_conditions
from kube.objects import Object

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def condition(status: str, *, seconds_ago: float = 0) -> Object:
    return {"type": "T", "status": status, "lastTransitionTime": format_time(NOW - timedelta(seconds=seconds_ago))}


@pytest.mark.parametrize(
    ("old", "threshold", "expected"),
    [
        (None, 60, "False"),
        (condition("True"), 60, "Progressing"),
        (condition("True", seconds_ago=9999), 60, "Progressing"),
        (condition("True"), 0, "False"),
        (condition("Progressing", seconds_ago=59), 60, "Progressing"),
        (condition("Progressing", seconds_ago=60), 60, "Progressing"),
        (condition("Progressing", seconds_ago=61), 60, "False"),
        (condition("Progressing"), 0, "False"),
        (condition("False"), 60, "False"),
        (condition("Unknown"), 60, "False"),
        ({"type": "T", "status": "Progressing", "lastTransitionTime": "soon"}, 60, "False"),
        ({"type": "T", "status": "Progressing"}, 60, "False"),
    ],
)
def test_what_is_bad_progresses_first(old: Object | None, threshold: float, expected: str) -> None:
    assert softened("False", old, threshold=threshold, now=NOW) == expected


def test_the_end_of_progressing() -> None:
    assert progressing_until(condition("Progressing", seconds_ago=20), threshold=60) == NOW + timedelta(seconds=40)
    assert progressing_until(condition("True", seconds_ago=20), threshold=60) is None


@given(steps=st.lists(st.integers(1, 50), min_size=1, max_size=8), threshold=st.integers(1, 120))
def test_what_stays_bad_is_reported_after_the_threshold_and_not_before(steps: list[int], threshold: int) -> None:
    now, passed = NOW, 0
    conditions: list[Object] = [condition("True", seconds_ago=1)]
    conditions = with_conditions(conditions, [Condition("T", "Progressing", "R", "m")], now=now)
    for step in steps:
        now, passed = now + timedelta(seconds=step), passed + step
        status = softened("False", conditions[0], threshold=threshold, now=now)
        assert (status == "False") is (passed > threshold)
        conditions = with_conditions(conditions, [Condition("T", status, "R", "m")], now=now)


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ({}, "NotReady"),
        ({"ExtensionsReady": "True"}, "NotReady"),
        ({"GardenletReady": "True"}, "NotReady"),
        ({"GardenletReady": "True", "ExtensionsReady": "True"}, "Ready"),
        ({"GardenletReady": "True", "ExtensionsReady": "Progressing"}, "Ready"),
        ({"GardenletReady": "True", "ExtensionsReady": "Unknown"}, "NotReady"),
        ({"GardenletReady": "False", "ExtensionsReady": "True"}, "NotReady"),
        ({"GardenletReady": "Unknown", "ExtensionsReady": "True"}, "Unknown"),
        ({"GardenletReady": "True", "ExtensionsReady": "True", "BackupBucketsReady": "Progressing"}, "NotReady"),
        ({"GardenletReady": "True", "ExtensionsReady": "True", "BackupBucketsReady": "True"}, "Ready"),
        ({"GardenletReady": "True", "ExtensionsReady": "True", "SeedSystemComponentsHealthy": "False"}, "NotReady"),
        ({"GardenletReady": "True", "ExtensionsReady": "True", "SeedSystemComponentsHealthy": "Progressing"}, "Ready"),
    ],
)
def test_the_phase_of_a_seed(having: dict[str, str], expected: str) -> None:
    assert phase_of({"type": kind, "status": status} for kind, status in having.items()) == expected
