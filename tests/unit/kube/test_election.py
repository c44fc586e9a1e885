"""The rules of leader election: who may take a lease, what is written, and until when a leader leads."""

import asyncio
import contextlib
import math
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import structlog

from kit.clock import FakeClock
from kit.eventually import soon
from kube.errors import Conflict, Forbidden, Unreachable
from kube.objects import Object
from kube.runtime.client import Client
from kube.runtime.election import (
    Action,
    ElectionSettings,
    LeaderElector,
    LeadershipLost,
    Tenure,
    boot_clock,
    decide,
    held_spec,
    is_release,
    new_identity,
    released_spec,
)

ME, OTHER = "pod-a_1", "pod-b_2"
NOW = datetime(2024, 9, 19, 11, 0, 2, 345678, tzinfo=UTC)


def lease(holder: str | None, duration: int | None = 15) -> Object:
    return {"metadata": {"name": "lease"}, "spec": {"holderIdentity": holder, "leaseDurationSeconds": duration}}


@pytest.mark.parametrize(
    ("seen", "unchanged_for", "action"),
    [
        (None, 0, Action.CREATE),
        *((lease(ME), seconds, Action.RENEW) for seconds in (0, 100)),
        *((lease(OTHER), 0, Action.WAIT), (lease(OTHER), 14.9, Action.WAIT), (lease(OTHER), 15, Action.TAKE)),
        *((lease(OTHER, 60), 59, Action.WAIT), (lease(OTHER, 60), 60, Action.TAKE)),
        *((lease(OTHER, None), 19, Action.WAIT), (lease(OTHER, None), 20, Action.TAKE)),
        (lease("", 1), 0, Action.TAKE),
        (lease(None), 0, Action.TAKE),
        ({"metadata": {"name": "lease"}}, 0, Action.TAKE),
        ({"metadata": {"name": "lease"}, "spec": None}, 0, Action.TAKE),
    ],
)
def test_what_is_done_about_a_lease(seen: Object | None, unchanged_for: float, action: Action) -> None:
    assert decide(seen, identity=ME, unchanged_for=unchanged_for, default_duration=20) is action


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "MODIFIED", "object": lease(OTHER)}, False),
        ({"type": "MODIFIED", "object": lease("", 1)}, True),
        ({"type": "ADDED", "object": {"metadata": {"name": "lease"}}}, True),
        ({"type": "DELETED", "object": lease(OTHER)}, True),
        ({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}}, False),
        ({"type": "ERROR", "object": {"kind": "Status", "code": 410}}, False),
    ],
)
def test_which_events_of_a_watch_are_a_release(event: Object, expected: bool) -> None:
    assert is_release(event) is expected


# --- what is written


MOMENT, BEFORE = "2024-09-19T11:00:02.345678Z", "2024-09-19T10:00:00.000000Z"
TAKEN = {"holderIdentity": ME, "leaseDurationSeconds": 15, "acquireTime": MOMENT, "renewTime": MOMENT}
OTHERS = {"holderIdentity": OTHER, "leaseDurationSeconds": 60, "acquireTime": BEFORE, "renewTime": BEFORE}
MINE = {**TAKEN, "acquireTime": BEFORE, "renewTime": BEFORE, "leaseTransitions": 0}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(None, {**TAKEN, "leaseTransitions": 0}, id="a new lease"),
        pytest.param({**OTHERS, "leaseTransitions": 4}, {**TAKEN, "leaseTransitions": 5}, id="another holder's"),
        pytest.param({}, {**TAKEN, "leaseTransitions": 1}, id="an empty one"),
        pytest.param({"leaseTransitions": None}, {**TAKEN, "leaseTransitions": 1}, id="one without transitions"),
        pytest.param(MINE, {**MINE, "renewTime": MOMENT}, id="the own one"),
        pytest.param({**MINE, "strategy": "x"}, {**MINE, "renewTime": MOMENT, "strategy": "x"}, id="with other fields"),
    ],
)
def test_a_lease_is_held(old: Object | None, new: Object) -> None:
    assert held_spec(old, identity=ME, lease_duration=15, now=NOW) == new


def test_others_never_see_a_shorter_lease_than_its_holder_counts_with() -> None:
    assert held_spec(None, identity=ME, lease_duration=15.2, now=NOW)["leaseDurationSeconds"] == 16


def test_a_released_lease_can_be_taken_at_once() -> None:
    released = released_spec({**MINE, "leaseTransitions": 4}, now=NOW)
    assert released == {**TAKEN, "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 4}
    assert decide({"spec": released}, identity=OTHER, unchanged_for=0, default_duration=15) is Action.TAKE
    assert held_spec(released, identity=OTHER, lease_duration=15, now=NOW)["leaseTransitions"] == 5


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


@pytest.mark.parametrize(
    ("renewals", "now", "remaining"),
    [
        pytest.param([], 100, -math.inf, id="before the first renewal"),
        pytest.param([95], 104.999, 0.001, id="until the deadline, counted from the start of the renewal"),
        pytest.param([95], 105, 0, id="at the deadline"),
        pytest.param([100, 108], 117, 1, id="a renewal moves the deadline"),
        pytest.param([100], 111, -1, id="an answer that comes after the deadline"),
    ],
)
def test_a_leader_leads_until_its_deadline(
    renewals: list[float], now: float, remaining: float, tenure: Tenure, clock: FakeClock
) -> None:
    for started in renewals:
        tenure.renewed(started)
    clock.now = now
    assert tenure.remaining == pytest.approx(remaining)
    assert tenure.is_leading() is (remaining > 0)
    with contextlib.nullcontext() if remaining > 0 else pytest.raises(LeadershipLost, match=r"^leader election lost$"):
        tenure.guard()


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


# --- at work


class Leases:
    """A client of one lease; it fails as the test states, by method."""

    def __init__(self, held_by: str = "", **errors: Exception) -> None:
        self.lease: Object = lease(held_by, 60)
        self.errors = errors
        self.watched = 0

    async def find(self, *_: Any, **__: Any) -> Object:
        return self.lease

    async def replace(self, _: Any, new: Object) -> Object:
        if "replace" in self.errors:
            raise self.errors["replace"]
        self.lease = new
        return new

    @contextlib.asynccontextmanager
    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.watched += 1
        if "watch" in self.errors:
            raise self.errors["watch"]
        yield

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"])


def elector(client: Leases, clock: FakeClock) -> LeaderElector:
    settings = ElectionSettings(namespace="n", name="l")
    return LeaderElector(cast("Client", client), settings, identity=ME, now=clock, sleep=clock.sleep, jitter=lambda: 0)


async def for_ever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("error", "again"), [(Forbidden(403, message="no"), False), (Unreachable("away"), True), (KeyError("bug"), True)]
)
async def test_a_candidate_that_can_not_watch_the_lease_looks_at_it(
    error: Exception, again: bool, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube.runtime.election._WATCH_AGAIN_SECONDS", 0.01)
    client = Leases(OTHER, watch=error)
    running = asyncio.create_task(elector(client, clock).run(for_ever))
    await soon(lambda: client.watched > again)
    client.lease = lease("")
    clock.advance(2)
    await soon(lambda: client.holder == ME)
    running.cancel()
    await asyncio.wait([running])
    assert (client.watched > 1) is again


@pytest.mark.parametrize(
    ("taken_by", "errors", "holder", "message"),
    [
        pytest.param("", {}, "", "", id="is released"),
        pytest.param(OTHER, {}, OTHER, "", id="is left to another holder"),
        pytest.param("", {"replace": Unreachable("away")}, ME, "Cannot release the leader lease", id="may stay"),
    ],
)
async def test_when_leading_is_cancelled_the_lease(
    taken_by: str, errors: dict[str, Exception], holder: str, message: str, clock: FakeClock
) -> None:
    client, leading = Leases(), asyncio.Event()

    async def lead() -> None:
        leading.set()
        try:
            await for_ever()
        finally:
            raise ValueError("unwinding")

    running = asyncio.create_task(elector(client, clock).run(lead))
    await leading.wait()
    client.errors = errors
    if taken_by:
        client.lease = lease(taken_by)
    with structlog.testing.capture_logs() as logs:
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
    assert client.holder == holder
    assert {message, "Leading ended with an error"} - {""} <= {entry["event"] for entry in logs}


async def test_the_leader_reports_in_the_lease_what_others_should_know(clock: FakeClock) -> None:
    client = Leases()
    client.lease["metadata"]["annotations"] = {"class": "former", "other": "kept"}
    leader = elector(client, clock)
    leader.annotations = {"class": "own"}
    running = asyncio.create_task(leader.run(for_ever))
    await soon(lambda: client.holder == ME)
    assert client.lease["metadata"] == {"name": "lease", "annotations": {"class": "own", "other": "kept"}}
    running.cancel()
    await asyncio.wait([running])


async def test_a_lease_of_another_program_gets_no_annotation(clock: FakeClock) -> None:
    client = Leases()
    before = dict(client.lease["metadata"])
    leader = elector(client, clock)
    leader.annotations = {"class": "own"}
    running = asyncio.create_task(leader.run(for_ever))
    await soon(lambda: client.holder == ME)
    assert client.lease["metadata"] == before
    running.cancel()
    await asyncio.wait([running])


async def test_who_does_not_stop_leading_keeps_the_lease(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.runtime.election._UNWIND_SECONDS", 0.01)
    client, leading, end = Leases(), asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        leading.set()
        while not end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await end.wait()

    running = asyncio.create_task(elector(client, clock).run(lead))
    await leading.wait()
    client.lease = lease(OTHER)
    client.errors = {"replace": Conflict(409, message="changed"), "watch": Forbidden(403, message="no")}
    clock.advance(2)
    await asyncio.wait([running])
    assert isinstance(running.exception(), LeadershipLost)
    assert client.holder == OTHER
    end.set()


# --- settings


@pytest.mark.parametrize(
    ("times", "timeout"), [({}, 5), ({"lease_duration": 2, "renew_deadline": 1, "retry_period": 0.1}, 1)]
)
def test_requests_get_half_of_the_deadline_and_a_second_at_least(times: Any, timeout: float) -> None:
    settings = ElectionSettings(namespace="garden", name="lease", **times)
    assert str(settings) == "garden/lease"
    assert settings.request_timeout == timeout


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(
            ({"resource_lock": lock}, f"{lock} lock is removed, migrate to leases")
            for lock in ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
        ),
        ({"resource_lock": "zookeeper"}, "Invalid lock-type zookeeper"),
        ({"lease_duration": 10}, "leaseDuration must be greater than renewDeadline"),
        ({"retry_period": 10 / 1.2}, "renewDeadline must be greater than retryPeriod*JitterFactor"),
        ({"retry_period": 0}, "retryPeriod must be greater than zero"),
    ],
)
def test_settings_that_would_not_work_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ElectionSettings(namespace="n", name="l", **settings)
