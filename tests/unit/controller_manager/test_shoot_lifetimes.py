"""How long Shoots live by their Quotas."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.shoot.quota import announcement, next_look
from gardener.api.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS
from gardener.garden.lifetimes import binding_of, end, first_end, lifetime
from kit.garden_objects import shoot
from kube.clock import format_time
from kube.objects import Key, Object

CREATED = datetime(2026, 1, 1, 10, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOURS = st.floats(min_value=0, max_value=24 * 400).map(lambda hours: timedelta(hours=hours))


def expiring(until: str | None = None, **spec: Any) -> Object:
    notes = None if until is None else {"shoot.gardener.cloud/expiration-timestamp": until}
    return shoot("n/s", creationTimestamp=format_time(CREATED), annotations=notes, **spec)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, None),
        ({"secretBindingName": "b"}, (SECRET_BINDINGS, Key("n", "b"))),
        ({"credentialsBindingName": "b", "secretBindingName": "c"}, (CREDENTIALS_BINDINGS, Key("n", "b"))),
    ],
)
def test_the_binding_leads_to_the_quotas(spec: Any, expected: object) -> None:
    assert binding_of(expiring(**spec)) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [((), None), ((None,), None), ((30, None, 3), 3), ((7,), 7), (("x",), None), ((10**12,), timedelta.max.days)],
)
def test_the_shortest_lifetime_counts(days: tuple[Any, ...], expected: int | None) -> None:
    found = lifetime([{"spec": {"clusterLifetimeDays": each}} for each in days])
    assert (found and found.days) == expected


def test_it_lasts_from_the_creation_unless_the_annotation_states_something_else() -> None:
    assert first_end(expiring(), 7 * DAY) == "2026-01-08T10:00:00Z"
    assert first_end(expiring(), timedelta.max) == "9999-12-31T00:00:00Z"
    assert end(expiring("2026-01-08T10:00:00Z")) == CREATED + 7 * DAY
    assert end(expiring()) is None
    with pytest.raises(ValueError, match="soon"):
        end(expiring("soon"))


@pytest.mark.parametrize(
    ("lives", "left", "expected"),
    [
        (30 * DAY, 8 * DAY, None),
        (30 * DAY, 7 * DAY, 7 * DAY),
        (30 * DAY, 2 * DAY, 7 * DAY),
        (30 * DAY, DAY, DAY),
        (30 * DAY, timedelta(minutes=59), HOUR),
        (7 * DAY, 7 * DAY, None),
        (3 * DAY, 2 * DAY, None),
        (3 * DAY, DAY, DAY),
    ],
)
def test_its_end_is_announced_three_times(lives: timedelta, left: timedelta, expected: timedelta | None) -> None:
    until = CREATED + lives
    assert announcement(expiring(), until, until - left) == expected


@given(left=HOURS, period=st.integers(1, 7200).map(lambda seconds: timedelta(seconds=seconds)))
def test_nothing_is_missed_between_two_looks(left: timedelta, period: timedelta) -> None:
    until = CREATED + timedelta(days=500)
    now = until - left
    later = next_look(until, now, sync_period=period)
    assert timedelta(0) < later <= period
    between = announcement(expiring(), until, now + later - timedelta(microseconds=1))
    assert between == announcement(expiring(), until, now)
