"""The rules of leader election: who may take a lease, what is written, and until when a leader leads."""

import math
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.clock import FakeClock
from kube.election import (
    Action,
    ElectionSettings,
    LeadershipLost,
    Tenure,
    boot_clock,
    decide,
    held_spec,
    new_identity,
    released_spec,
    tells_of_release,
)
from kube.objects import Object

ME, OTHER = "pod-a_1", "pod-b_2"
NOW = datetime(2024, 9, 19, 11, 0, 2, 345678, tzinfo=UTC)


def lease(holder: str | None, duration: int | None = 15) -> Object:
    return {"metadata": {"name": "lease"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": duration}}


@pytest.mark.parametrize(
    ("seen", "unchanged_for", "action"),
    [
        (None, 0, Action.CREATE),
        (lease(ME), 0, Action.RENEW),
        (lease(ME), 100, Action.RENEW),
        (lease(OTHER), 0, Action.WAIT),
        (lease(OTHER), 14.9, Action.WAIT),
        (lease(OTHER), 15, Action.TAKE),
        (lease(OTHER, 60), 59, Action.WAIT),
        (lease(OTHER, 60), 60, Action.TAKE),
        (lease(OTHER, None), 19, Action.WAIT),
        (lease(OTHER, None), 20, Action.TAKE),
        (lease("", 1), 0, Action.TAKE),
        (lease(None), 0, Action.TAKE),
        ({"metadata": {"name": "lease"}}, 0, Action.TAKE),
        ({"metadata": {"name": "lease"}, "spec": None}, 0, Action.TAKE),
    ],
)
def test_what_is_done_about_a_lease(seen: Object | None, unchanged_for: float, action: Action) -> None:
    assert decide(seen, identity=ME, unchanged_for=unchanged_for, default_duration=20) is action


@pytest.mark.parametrize(
    ("event", "is_told"),
    [
        ({"type": "MODIFIED", "object": lease(OTHER)}, False),
        ({"type": "MODIFIED", "object": lease("", 1)}, True),
        ({"type": "ADDED", "object": {"metadata": {"name": "lease"}}}, True),
        ({"type": "DELETED", "object": lease(OTHER)}, True),
        ({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}, False),
        ({"type": "ERROR", "object": {"kind": "Status", "code": 410}}, False),
    ],
)
def test_which_events_of_a_watch_tell_of_a_release(event: Object, is_told: bool) -> None:
    assert tells_of_release(event) is is_told


# --- what is written


def test_a_new_lease_has_had_no_transitions() -> None:
    assert held_spec(None, identity=ME, lease_duration=15, now=NOW) == {
        "holderIdentity": ME,
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-09-19T11:00:02.345678Z",
        "renewTime": "2024-09-19T11:00:02.345678Z",
        "leaseTransitions": 0,
    }


def test_taking_a_lease_from_another_holder_is_a_transition() -> None:
    old = {
        "holderIdentity": OTHER,
        "leaseDurationSeconds": 60,
        "acquireTime": "2024-09-19T10:00:00.000000Z",
        "renewTime": "2024-09-19T10:30:00.000000Z",
        "leaseTransitions": 4,
    }
    assert held_spec(old, identity=ME, lease_duration=15, now=NOW) == {
        "holderIdentity": ME,
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-09-19T11:00:02.345678Z",
        "renewTime": "2024-09-19T11:00:02.345678Z",
        "leaseTransitions": 5,
    }


@pytest.mark.parametrize("transitions", [{}, {"leaseTransitions": None}])
def test_an_empty_lease_counts_its_transitions_from_none(transitions: Object) -> None:
    assert held_spec(transitions, identity=ME, lease_duration=15, now=NOW)["leaseTransitions"] == 1


def test_renewing_a_lease_changes_the_time_of_renewal_alone() -> None:
    old = held_spec(None, identity=ME, lease_duration=15, now=datetime(2024, 9, 19, 10, tzinfo=UTC))
    new = held_spec(old, identity=ME, lease_duration=15, now=NOW)
    assert new == {**old, "renewTime": "2024-09-19T11:00:02.345678Z"}
    assert new["acquireTime"] == "2024-09-19T10:00:00.000000Z"


def test_others_never_see_a_shorter_lease_than_its_holder_counts_with() -> None:
    assert held_spec(None, identity=ME, lease_duration=15.2, now=NOW)["leaseDurationSeconds"] == 16


def test_a_released_lease_can_be_taken_at_once() -> None:
    old = held_spec({"leaseTransitions": 3}, identity=ME, lease_duration=15, now=datetime(2024, 9, 19, tzinfo=UTC))
    released = released_spec(old, now=NOW)
    assert released == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2024-09-19T11:00:02.345678Z",
        "renewTime": "2024-09-19T11:00:02.345678Z",
        "leaseTransitions": 4,
    }
    assert decide({"spec": released}, identity=OTHER, unchanged_for=0, default_duration=15) is Action.TAKE
    assert held_spec(released, identity=OTHER, lease_duration=15, now=NOW)["leaseTransitions"] == 5


def test_fields_of_a_lease_that_are_not_of_the_election_are_kept() -> None:
    spec = held_spec({"strategy": "x"}, identity=ME, lease_duration=15, now=NOW)
    assert spec["strategy"] == "x"


def test_no_two_processes_have_the_same_identity() -> None:
    assert new_identity() != new_identity()
    host, _, random = new_identity().rpartition("_")
    assert host
    assert len(random) == 36


# --- until when a leader leads


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(100.0)


@pytest.fixture
def tenure(clock: FakeClock) -> Tenure:
    return Tenure(renew_deadline=10, now=clock)


def test_nobody_leads_before_the_first_renewal(tenure: Tenure) -> None:
    assert not tenure.is_leading()
    with pytest.raises(LeadershipLost, match=r"^leader election lost$"):
        tenure.guard()


def test_a_leader_leads_until_the_deadline_counted_from_the_start_of_the_renewal(
    tenure: Tenure, clock: FakeClock
) -> None:
    tenure.renewed(95)
    tenure.guard()
    assert tenure.remaining == 5
    clock.now = 104.999
    tenure.guard()
    clock.now = 105
    assert not tenure.is_leading()
    with pytest.raises(LeadershipLost):
        tenure.guard()


def test_a_renewal_moves_the_deadline(tenure: Tenure, clock: FakeClock) -> None:
    tenure.renewed(100)
    clock.now = 109
    tenure.renewed(108)
    clock.now = 117
    tenure.guard()


def test_an_answer_that_comes_after_the_deadline_does_not_make_a_leader(tenure: Tenure, clock: FakeClock) -> None:
    started = clock.now
    clock.now += 11
    tenure.renewed(started)
    assert not tenure.is_leading()


def test_an_ended_tenure_forbids_writing_at_once(tenure: Tenure) -> None:
    tenure.renewed(100)
    tenure.end()
    assert tenure.remaining == -math.inf
    with pytest.raises(LeadershipLost):
        tenure.guard()


@pytest.mark.parametrize("duration", [10.1, 15, 60])
def test_a_leader_ends_before_another_may_begin(duration: float, clock: FakeClock) -> None:
    """Whatever the renewal's way took, and whenever within it the API server stored it."""
    settings = ElectionSettings(namespace="n", name="l", lease_duration=duration)
    tenure = Tenure(renew_deadline=settings.renew_deadline, now=clock)
    started = clock.now
    tenure.renewed(started)
    spec = held_spec(None, identity=OTHER, lease_duration=duration, now=NOW)
    stored_at_the_earliest = started
    while tenure.is_leading():
        unchanged_for = clock.now - stored_at_the_earliest
        assert decide({"spec": spec}, identity=ME, unchanged_for=unchanged_for, default_duration=1) is Action.WAIT
        clock.now += 0.01


def test_the_clock_goes_forward() -> None:
    assert boot_clock() <= boot_clock()


# --- settings


def test_the_usual_settings_are_valid() -> None:
    settings = ElectionSettings(namespace="garden", name="gardener-resource-manager")
    assert str(settings) == "garden/gardener-resource-manager"
    assert settings.request_timeout == 5


def test_requests_get_a_second_at_least() -> None:
    settings = ElectionSettings(namespace="n", name="l", lease_duration=2, renew_deadline=1, retry_period=0.1)
    assert settings.request_timeout == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resource_lock": "endpoints"}, "endpoints lock is removed, migrate to leases"),
        ({"resource_lock": "configmaps"}, "configmaps lock is removed, migrate to leases"),
        ({"resource_lock": "endpointsleases"}, "endpointsleases lock is removed, migrate to leases"),
        ({"resource_lock": "configmapsleases"}, "configmapsleases lock is removed, migrate to leases"),
        ({"resource_lock": "zookeeper"}, "Invalid lock-type zookeeper"),
        ({"lease_duration": 10}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": 10 / 1.2}, "renewDeadline must be greater than retryPeriod*JitterFactor"),
        ({"retry_period": 0}, "retryPeriod must be greater than zero"),
    ],
)
def test_settings_that_would_not_work_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ElectionSettings(namespace="n", name="l", **settings)
