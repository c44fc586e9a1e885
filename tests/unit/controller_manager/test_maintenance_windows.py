"""When a Shoot is maintained: windows over midnight, moments within bounds, what counts as done."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.maintenance.schedule import (
    effective_window,
    following,
    is_due,
    seconds_at_start,
    seconds_until_next,
)
from gardener.garden.windows import LONGEST, SHORTEST
from kit.garden_objects import shoot
from kube.clock import format_time
from kube.objects import Object

HOUR, MARGIN = 3600.0, timedelta(minutes=15)
BERLIN = ("220000+0100", "230000+0100")
NIGHT = ("230000+0000", "010000+0000")
OPERATION = "gardener.cloud/operation"


def maintained(begin: str, end: str, **last: str) -> Object:
    return shoot("", maintenance={"timeWindow": {"begin": begin, "end": end}}, status={"lastMaintenance": last})


def at(time: str, day: int = 16) -> datetime:
    return datetime.fromisoformat(f"2024-01-{day}T{time}+00:00")


def lowest(low: float, _: float) -> float:
    return low


def highest(_: float, high: float) -> float:
    return high


# --- the timer


@pytest.mark.parametrize(
    ("window", "now", "bounds"),
    [
        (BERLIN, "20:00", (1 * HOUR, 1.75 * HOUR)),
        (BERLIN, "21:30", (23.5 * HOUR, 24.25 * HOUR)),
        (BERLIN, "21:00", (24 * HOUR, 24.75 * HOUR)),
        (BERLIN, "22:00", (23 * HOUR, 23.75 * HOUR)),
        (NIGHT, "22:00", (1 * HOUR, 2.75 * HOUR)),
        (NIGHT, "23:30", (23.5 * HOUR, 25.25 * HOUR)),
        (NIGHT, "00:30", (22.5 * HOUR, 24.25 * HOUR)),
        (NIGHT, "01:30", (21.5 * HOUR, 23.25 * HOUR)),
        # Always: once a day.
        (("", ""), "12:00", (12 * HOUR, 36 * HOUR)),
        (("25:00", "x"), "12:00", (12 * HOUR, 36 * HOUR)),
    ],
)
def test_the_next_maintenance_is_somewhere_in_the_next_window(
    window: tuple[str, str], now: str, bounds: tuple[float, float]
) -> None:
    obj = maintained(*window)
    assert (seconds_until_next(obj, at(now), lowest), seconds_until_next(obj, at(now), highest)) == bounds


MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2024, 12, 31), timezones=st.just(UTC))
BEGINS = st.builds("{:02}{:02}{:02}".format, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
OFFSETS = st.sampled_from(("+0000", "+0100", "-0330", "+1400", "-1200"))
LENGTHS = st.integers(int(SHORTEST.total_seconds()), int(LONGEST.total_seconds()))


@st.composite
def shoots(draw: st.DrawFn) -> tuple[dict[str, Any], timedelta]:
    """With a window as the API takes it, and its length."""
    begin, offset, length = draw(BEGINS), draw(OFFSETS), timedelta(seconds=draw(LENGTHS))
    end = datetime.strptime(begin, "%H%M%S").replace(tzinfo=UTC) + length
    return maintained(begin + offset, f"{end:%H%M%S}{offset}"), length


@given(shoots(), MOMENTS, st.floats(0, 1))
def test_every_moment_is_in_the_window_and_later_than_now(
    given_shoot: tuple[dict[str, Any], timedelta], now: datetime, share: float
) -> None:
    obj, length = given_shoot
    seconds = seconds_until_next(obj, now, lambda low, high: low + share * (high - low))
    occurrence = following(obj, now)
    assert 0 < seconds <= (timedelta(days=1) + length).total_seconds()
    assert occurrence.end - occurrence.begin == length - MARGIN
    assert is_due(obj, min(now + timedelta(seconds=seconds), occurrence.end))


@given(shoots(), MOMENTS)
def test_windows_follow_each_other_day_by_day(given_shoot: tuple[dict[str, Any], timedelta], now: datetime) -> None:
    window = effective_window(given_shoot[0])
    latest, next_one = window.latest(now), window.following(now)
    assert latest.begin <= now < next_one.begin
    assert next_one.begin - latest.begin == timedelta(days=1)


# --- is it time for it


@pytest.mark.parametrize(
    ("window", "now", "expected"),
    [
        (BERLIN, "20:59:59", False),
        (BERLIN, "21:00:00", True),
        (BERLIN, "21:45:00", True),
        (BERLIN, "21:45:00.9", True),
        (BERLIN, "21:45:01", False),
        (BERLIN, "22:00:00", False),
        (NIGHT, "22:59:59", False),
        (NIGHT, "23:00:00", True),
        (NIGHT, "23:59:59", True),
        (NIGHT, "00:00:00", True),
        (NIGHT, "00:45:00", True),
        (NIGHT, "00:45:01", False),
        (("235500+0000", "002500+0000"), "00:10:00", True),
        (("235500+0000", "002500+0000"), "00:10:01", False),
        (("235500+0000", "001000+0000"), "00:09:00", True),
        (("", ""), "03:00:00", True),
        (("nonsense", "230000+0100"), "03:00:00", True),
    ],
)
def test_begin_and_an_earlier_end_belong_to_the_window(window: tuple[str, str], now: str, expected: bool) -> None:
    assert is_due(maintained(*window), at(now)) is expected


@pytest.mark.parametrize(
    ("triggered", "state", "expected"),
    [
        (at("21:10"), "Succeeded", False),
        (at("21:00"), "Succeeded", False),
        (at("21:10"), "Failed", False),
        # It was not finished.
        (at("21:10"), "Processing", True),
        # By hand, in the afternoon.
        (at("15:00"), "Succeeded", True),
        (at("21:10", day=15), "Succeeded", True),
    ],
)
def test_a_shoot_is_maintained_once_in_a_window(triggered: datetime, state: str, expected: bool) -> None:
    obj = maintained(*BERLIN, triggeredTime=format_time(triggered), state=state)
    assert is_due(obj, at("21:30")) is expected
    obj["metadata"] = {"annotations": {OPERATION: "maintain"}}
    assert is_due(obj, at("21:30"))
    assert is_due(obj, at("12:00"))


def test_other_operations_wait_for_the_window() -> None:
    obj = {**maintained(*BERLIN), "metadata": {"annotations": {OPERATION: "reconcile"}}}
    assert not is_due(obj, at("12:00"))


# --- after a restart


@pytest.mark.parametrize(
    ("obj", "now", "longest"),
    [
        (maintained(*BERLIN), "21:30", 900.0),
        (maintained(*NIGHT), "23:45", HOUR),
        (maintained(*NIGHT), "00:44", 60.0),
        # They only get their timers.
        (maintained(*BERLIN), "12:00", 0.0),
        (maintained(*BERLIN, triggeredTime="2024-01-16T21:10:00Z", state="Succeeded"), "21:30", 0.0),
        ({**maintained(*BERLIN), "metadata": {"annotations": {OPERATION: "maintain"}}}, "21:30", 0.0),
    ],
)
def test_a_restart_in_the_window_spreads_what_is_left_to_do(obj: dict[str, Any], now: str, longest: float) -> None:
    assert seconds_at_start(obj, at(now), lowest) == 0.0
    assert seconds_at_start(obj, at(now), highest) == longest
