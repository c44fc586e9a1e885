"""What a gardenlet writes for a check that failed: thresholds, and the pardon of Shoots that are worked on."""

from datetime import UTC, datetime, timedelta

import pytest

from gardener.conditions import failed, not_checked, pardoned
from kube.clock import format_time
from kube.conditions import Condition
from kube.objects import Object

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
FOUND = Condition("SystemComponentsHealthy", "False", "Broken", "pod x is broken")
THRESHOLD = 60.0


def at(seconds_ago: float) -> str:
    return format_time(NOW - timedelta(seconds=seconds_ago))


def old(status: str, *, reason: str = "Broken", seconds_ago: float = 3600.0, message_ago: float = 3600.0) -> Object:
    times = {"lastTransitionTime": at(seconds_ago), "lastUpdateTime": at(message_ago)}
    return {"type": FOUND.type, "status": status, "reason": reason, "message": "m", **times}


def succeeded(seconds_ago: float, state: str = "Succeeded") -> Object:
    return {"type": "Reconcile", "state": state, "lastUpdateTime": at(seconds_ago)}


@pytest.mark.parametrize(
    ("present", "operation", "without", "status"),
    [
        (None, None, "False", "False"),
        (old("True"), None, "False", "Progressing"),
        (old("Unknown"), None, "False", "False"),
        (old("Unknown"), succeeded(10), "False", "False"),
        (old("Progressing", seconds_ago=60), None, "False", "Progressing"),
        (old("Progressing", seconds_ago=61), None, "False", "False"),
        (old("Progressing", seconds_ago=61), succeeded(60), "False", "Progressing"),
        (old("Progressing", seconds_ago=61), succeeded(61), "False", "False"),
        (old("Progressing", seconds_ago=61), succeeded(10, "Processing"), "False", "False"),
        # A message that changes all the time does not keep it in progress.
        (old("Progressing", seconds_ago=61, message_ago=1), None, "False", "False"),
        (old("False"), None, "False", "False"),
        (old("False", reason="Other"), None, "False", "Progressing"),
        (old("False"), succeeded(60), "False", "Progressing"),
        (old("False"), succeeded(61), "False", "False"),
        ({**old("Progressing"), "lastTransitionTime": "nonsense"}, None, "False", "False"),
        (old("Progressing", seconds_ago=61), {"state": "Succeeded"}, "False", "False"),
    ],
)
def test_a_failed_check_is_in_progress_for_its_threshold(
    present: Object | None, operation: Object | None, without: str, status: str
) -> None:
    assert failed(present, FOUND, threshold=None, last_operation=operation, now=NOW).status == without
    found = failed(present, FOUND, threshold=THRESHOLD, last_operation=operation, now=NOW)
    assert found == Condition(FOUND.type, status, FOUND.reason, FOUND.message)


CREATING = {"type": "Create", "state": "Processing"}
CREATE_FAILED = {"type": "Create", "state": "Failed"}
RECONCILING = {"type": "Reconcile", "state": "Processing"}


@pytest.mark.parametrize(
    ("shoot", "status"),
    [
        ({}, "Progressing"),
        ({"lastOperation": CREATING}, "Progressing"),
        ({"lastOperation": CREATE_FAILED, "lastErrors": [{"description": "d"}]}, "Progressing"),
        ({"lastOperation": {"type": "Create", "state": "Succeeded"}}, "False"),
        ({"lastOperation": {"type": "Delete", "state": "Error"}}, "Progressing"),
        ({"lastOperation": RECONCILING}, "Progressing"),
        ({"lastOperation": RECONCILING, "lastErrors": []}, "Progressing"),
        ({"lastOperation": RECONCILING, "lastErrors": [{"description": "d"}]}, "False"),
        ({"lastOperation": {"type": "Reconcile", "state": "Error"}}, "False"),
        ({"lastOperation": {"type": "Reconcile", "state": "Succeeded"}}, "False"),
    ],
)
def test_a_shoot_that_is_worked_on_is_pardoned(shoot: Object, status: str) -> None:
    assert pardoned(FOUND, shoot) == Condition(FOUND.type, status, FOUND.reason, FOUND.message)


@pytest.mark.parametrize("status", ["True", "Unknown", "Progressing"])
def test_only_what_is_false_is_pardoned(status: str) -> None:
    found = Condition(FOUND.type, status, "R", "m")
    assert pardoned(found, {}) == found


def test_a_check_that_could_not_be_carried_out_reports_why() -> None:
    assert not_checked("T", "no answer") == Condition("T", "Unknown", "ConditionCheckError", "no answer")
