"""When Projects are stale, and when they are deleted for it."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.project.stale import Decision, decide, is_exempt
from config.controller_manager.controllers import Project
from kube.clock import format_time
from kube.objects import Object

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = Project()
"""30 days of life, 14 of grace, 90 until the end."""


def day(number: float) -> str:
    return format_time(START + timedelta(days=number))


def project(
    *, created: float = 0, activity: float | None = None, since: float | None = None, auto: float | None = None
) -> Object:
    stamps = {"lastActivityTimestamp": activity, "staleSinceTimestamp": since, "staleAutoDeleteTimestamp": auto}
    status = {field: day(number) for field, number in stamps.items() if number is not None}
    return {"metadata": {"name": "dev", "creationTimestamp": day(created)}, "status": status}


def on(number: float, found: Object, *, is_kept: bool = False, settings: Project = SETTINGS) -> Decision:
    return decide(found, settings, is_kept=is_kept, now=START + timedelta(days=number))


@pytest.mark.parametrize(
    ("now", "found", "since", "auto"),
    [
        # created on day 0, last Shoot deleted on day 40
        (29, project(), None, None),
        (30, project(), 30, None),
        (69, project(activity=40), None, None),
        (70, project(activity=40), 70, None),
        (83, project(activity=40, since=70), 70, None),
        (84, project(activity=40, since=70), 70, 160),
        (100, project(activity=40, since=70, auto=160), 70, 160),
        (100, project(activity=100, since=70, auto=160), None, None),
        (80, project(activity=40, since=70, auto=160), 70, None),
    ],
)
def test_a_project_becomes_stale_and_gets_a_time_of_deletion(
    now: float, found: Object, since: float | None, auto: float | None
) -> None:
    decision = on(now, found)
    expected = tuple("" if number is None else day(number) for number in (since, auto))
    assert (decision.since, decision.auto_delete) == expected
    assert not decision.deletes


@pytest.mark.parametrize(("expiration", "expected"), [(30, 160), (90, 160), (120, 190)])
def test_the_time_of_deletion_never_moves_closer(expiration: int, expected: float) -> None:
    settings = Project(stale_expiration_time_days=expiration)
    assert on(100, project(since=70, auto=160), settings=settings).auto_delete == day(expected)


@pytest.mark.parametrize(("now", "expected"), [(159, False), (160, True), (200, True)])
def test_a_project_is_deleted_when_its_time_has_come(now: float, expected: bool) -> None:
    assert on(now, project(since=70, auto=160)).deletes is expected
    assert on(now, project(since=70)).deletes is expected


def test_a_grace_period_that_is_longer_than_the_expiration_is_waited_for() -> None:
    settings = Project(stale_grace_period_days=100, stale_expiration_time_days=10)
    assert not on(169, project(since=70), settings=settings).deletes
    assert on(170, project(since=70), settings=settings).deletes


@pytest.mark.parametrize("found", [project(since=70), project(since=70, auto=90)])
def test_a_project_that_is_used_is_not_stale(found: Object) -> None:
    decision = on(200, found, is_kept=True)
    assert decision == Decision()
    status = decision.apply({**found["status"], "phase": "Ready"})
    assert {name: value for name, value in status.items() if value} == {"phase": "Ready"}


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("1", True), ("false", False), ("yes", False), (None, False)]
)
def test_the_check_can_be_switched_off_for_a_namespace(value: str | None, expected: bool) -> None:
    annotations = {} if value is None else {"project.gardener.cloud/skip-stale-check": value}
    assert is_exempt({"metadata": {"annotations": annotations}}) is expected


_DAYS = st.none() | st.floats(0, 300)


@given(
    now=st.floats(0, 400),
    activity=_DAYS,
    since=_DAYS,
    auto=_DAYS,
    minimum=st.integers(0, 50),
    grace=st.integers(0, 50),
    expiration=st.integers(0, 100),
)
def test_at_its_moment_the_decision_changes_and_not_before(
    now: float,
    activity: float | None,
    since: float | None,
    auto: float | None,
    minimum: int,
    grace: int,
    expiration: int,
) -> None:
    settings = Project(
        minimum_lifetime_days=minimum, stale_grace_period_days=grace, stale_expiration_time_days=expiration
    )
    found = project(activity=activity, since=since, auto=auto)
    decision = on(now, found, settings=settings)
    again = {**found, "status": decision.apply(found["status"])}
    assert on(now, again, settings=settings) == decision
    if decision.due is not None and not decision.deletes:
        days = (decision.due - START) / timedelta(days=1)
        assert days > now - 1e-4
        assert on(days - 0.001, again, settings=settings) == decision or days - 0.001 < now
        assert on(days + 0.001, again, settings=settings) != decision


@given(now=st.floats(0, 400), activity=_DAYS, since=_DAYS, auto=_DAYS)
def test_nothing_is_deleted_before_all_periods_have_passed(
    now: float, activity: float | None, since: float | None, auto: float | None
) -> None:
    if on(now, project(activity=activity, since=since, auto=auto)).deletes:
        slack = 1e-4
        assert now >= 30 - slack
        assert activity is None or now >= activity + 30 - slack
        assert since is not None
        assert now >= since + 90 - slack
        assert auto is None or auto < since + 90 or now >= auto - slack
