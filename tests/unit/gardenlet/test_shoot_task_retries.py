"""What becomes of operations on Shoots that failed or were cut off, and of many Shoots with one maintenance window."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from agent.gardenlet.flow.graph import TaskFailure
from agent.gardenlet.shoot.main.rules import status
from agent.gardenlet.shoot.main.rules.domains import DomainError
from agent.gardenlet.shoot.main.rules.timing import Due, Timing
from config.gardenlet.controllers import Shoot as Settings
from gardener.garden.shoots import operation_of
from kube.clock import format_time
from kube.errors import ApiError, Conflict, Forbidden, NotFound, TimedOut, TooManyRequests, Unreachable
from kube.objects import Object
from kube.runtime.controller import ReconcileError

NOW = datetime(2024, 1, 1, 22, 10, tzinfo=UTC)
WINDOW = {"timeWindow": {"begin": "220000+0000", "end": "230000+0000"}}
"""Maintenance begins in it until 22:45."""
LEFT = timedelta(minutes=35)
HOUR = 3600.0
QUOTA = "exceeded quota: InsufficientQuota, Unauthorized, InvalidParameterValue"
"""A text that would be a fault of the user if an extension reported it."""
OWN = [
    NotFound(404, message=QUOTA),
    Conflict(409, message=QUOTA),
    TooManyRequests(429, message=QUOTA),
    ApiError(503, message=QUOTA),
    ApiError(500, message=QUOTA),
    Forbidden(403, message=QUOTA),
    Unreachable(QUOTA),
    TimedOut(QUOTA),
    ReconcileError(QUOTA),
]


def _shoot(state: str, kind: str = "Reconcile", *, ago: float = 24 * HOUR, deleting: bool = False) -> Object:
    meta: Object = {"name": "s", "namespace": "garden-dev", "generation": 3}
    operation = {"type": kind, "state": state, "lastUpdateTime": format_time(NOW - timedelta(seconds=ago))}
    return {
        "metadata": meta | ({"deletionTimestamp": format_time(NOW)} if deleting else {}),
        "spec": {"seedName": "a", "maintenance": WINDOW},
        "status": {"seedName": "a", "observedGeneration": 3, "lastOperation": operation},
    }


def _timing(random: Random, **settings: Any) -> Timing:
    return Timing(settings=Settings(**settings), version="1", is_asked=lambda _: False, uniform=random.uniform)


# --- what is not the user's fault


@pytest.mark.parametrize("error", OWN, ids=lambda error: type(error).__name__)
def test_what_the_own_requests_meet_has_no_code_and_is_tried_again(error: Exception) -> None:
    failure = status.failure("flow", [TaskFailure("t", error, str(error))], now=NOW)
    before = {"retryCycleStartTime": format_time(NOW - timedelta(hours=11))}
    ended = status.failed(before, "Create", failure, retry_duration=12 * HOUR, now=NOW)
    assert ended["lastOperation"]["state"] == "Error"
    assert "codes" not in ended["lastErrors"][0]


@pytest.mark.parametrize("error", OWN, ids=lambda error: type(error).__name__)
def test_an_operation_that_can_not_be_prepared_is_never_given_up(error: Exception) -> None:
    errors = [{"taskID": "t", "description": "before"}]
    before = {"retryCycleStartTime": format_time(NOW - timedelta(days=9)), "lastErrors": errors}
    ended = status.not_initialized(before, "Reconcile", str(error), status.codes_of(error), now=NOW)
    reported = f"Could not initialize a new operation for Shoot cluster: {error}"
    assert (ended["lastOperation"]["state"], ended["lastOperation"]["description"]) == ("Error", reported)
    assert {name: ended[name] for name in before} == before


def test_what_the_user_has_to_correct_before_an_operation_is_listed_once() -> None:
    error = DomainError("no credentials")
    first = status.not_initialized({}, "Create", str(error), status.codes_of(error), now=NOW)
    again = status.not_initialized(first, "Create", str(error), status.codes_of(error), now=NOW)
    (listed,) = again["lastErrors"]
    assert (listed["taskID"], listed["codes"]) == ("initializeOperation", ["ERR_CONFIGURATION_PROBLEM"])
    assert again["lastOperation"]["state"] == "Error"


# --- what was cut off


@pytest.mark.parametrize(
    ("kind", "deleting"), [("Create", False), ("Reconcile", False), ("Restore", False), ("Delete", True)]
)
@pytest.mark.parametrize("state", ["Processing", "Aborted", "Error"])
def test_what_did_not_succeed_is_gone_on_with_at_once_in_and_out_of_the_window(
    kind: str, state: str, deleting: bool
) -> None:
    shoot, timing = _shoot(state, kind, deleting=deleting), _timing(Random(1), reconcile_in_maintenance_only=True)
    assert operation_of(shoot) == kind
    for now in (NOW, NOW + timedelta(hours=6)):
        assert (timing.due(shoot, now), timing.first_delay(shoot, now)) == (Due.NOW, 0.0)


def test_what_is_requested_last_decides_which_operation_it_is() -> None:
    assert operation_of(_shoot("Aborted", "Create", deleting=True)) == "Delete"
    assert operation_of(_shoot("Aborted", "Delete", deleting=True)) == "Delete"


# --- many Shoots


def test_a_restart_in_the_window_repeats_nothing_and_spreads_the_rest() -> None:
    timing = _timing(Random(1), reconcile_in_maintenance_only=True)
    done, open_ = _shoot("Succeeded", ago=300), _shoot("Succeeded")
    to_next = timedelta(hours=24) - timedelta(minutes=10)
    for _ in range(150):
        assert timing.due(done, NOW) is Due.LATER
        delay = timing.first_delay(done, NOW)
        assert to_next <= timedelta(seconds=delay) <= to_next + timedelta(minutes=45)
    assert timing.due(open_, NOW) is Due.NOW
    delays = [timedelta(seconds=timing.first_delay(open_, NOW)) for _ in range(150)]
    assert all(timedelta(0) <= each <= LEFT for each in delays)
    assert {timing.due(open_, NOW + each) for each in delays if each < LEFT} == {Due.NOW}
    by_minute = Counter(each // timedelta(minutes=1) for each in delays)
    assert len(by_minute) > 30
    assert max(by_minute.values()) < 15


def test_a_shoot_that_was_done_in_its_window_comes_in_the_next_one() -> None:
    timing = _timing(Random(1), reconcile_in_maintenance_only=True)
    for ago in range(0, 600, 60):
        shoot = _shoot("Succeeded", ago=ago)
        assert timing.due(shoot, NOW) is Due.LATER
        delay = timing.next_delay(shoot, NOW)
        assert delay is not None
        assert timing.due(shoot, NOW + timedelta(seconds=delay)) is Due.NOW
