"""Moments that machines with other clocks have written."""

from datetime import UTC, datetime, timedelta

import pytest

from kube.clock import FirstSeen, seconds_until

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("left", "seconds"),
    [(-HOUR, 0), (0 * SECOND, 0), (0.5 * SECOND, 0.5), (10 * SECOND, 10), (11 * SECOND, 10), (HOUR, 10)],
)
def test_a_wait_is_never_longer_than_its_period(left: timedelta, seconds: float) -> None:
    assert seconds_until(NOW + left, NOW, longest=10) == seconds


@pytest.mark.parametrize(
    ("written", "counts"),
    [(-HOUR, -HOUR), (-SECOND, -SECOND), (0 * SECOND, 0 * SECOND), (SECOND, 0 * SECOND), (HOUR, 0 * SECOND)],
)
def test_what_is_written_by_a_clock_ahead_counts_from_when_it_was_seen(written: timedelta, counts: timedelta) -> None:
    seen: FirstSeen[str] = FirstSeen()
    moment = NOW + written
    for later in (0, 1, 10_000):
        assert seen.of("a", moment, now=NOW + later * SECOND) == NOW + counts


def test_another_moment_counts_again() -> None:
    seen: FirstSeen[str] = FirstSeen()
    seen.of("a", NOW + HOUR, now=NOW)
    assert seen.of("b", NOW + HOUR, now=NOW + SECOND) == NOW + SECOND
    assert seen.of("a", NOW + HOUR + SECOND, now=NOW + 2 * SECOND) == NOW + 2 * SECOND
    seen.forget("a")
    assert seen.of("a", NOW + HOUR + SECOND, now=NOW + 3 * SECOND) == NOW + 3 * SECOND
