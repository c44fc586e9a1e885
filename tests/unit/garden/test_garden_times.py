"""Windows of time and cron expressions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.cron import parse_cron
from gardener.garden.windows import parse_moment, parse_window

MONDAY = datetime(2024, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("begin", "end", "length"),
    [
        ("220000+0100", "230000+0100", timedelta(hours=1)),
        ("230000+0000", "010000+0000", timedelta(hours=2)),
        ("230000+0000", "010000+0100", timedelta(hours=1)),
        ("220000+0000", "220000+0000", timedelta(hours=24)),
    ],
)
def test_a_window_may_end_on_the_next_day(begin: str, end: str, length: timedelta) -> None:
    assert parse_window(begin, end).length == length


def test_a_window_over_midnight_contains_both_sides_of_it() -> None:
    window = parse_window("230000+0000", "010000+0000")
    inside = [hour for hour in range(24) if window.contains(timedelta(hours=hour))]
    assert inside == [0, 23]


@pytest.mark.parametrize("text", ["", "220000", "2200+0100", "250000+0000", "226000+0000", "220000+2500", "22:00:00"])
def test_what_is_no_time_of_a_window(text: str) -> None:
    with pytest.raises(ValueError, match="must be of the form|is not a valid"):
        parse_moment(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 20 * * *", datetime(2024, 1, 1, 20, 0, tzinfo=UTC)),
        ("*/15 * * * *", datetime(2024, 1, 1, 12, 15, tzinfo=UTC)),
        ("0 6 * * 2-5", datetime(2024, 1, 2, 6, 0, tzinfo=UTC)),
        ("0 6 * * SAT", datetime(2024, 1, 6, 6, 0, tzinfo=UTC)),
        ("30 8 15 FEB ?", datetime(2024, 2, 15, 8, 30, tzinfo=UTC)),
        ("0 0 13 * 5", datetime(2024, 1, 5, 0, 0, tzinfo=UTC)),
        ("0 0 29 2 *", datetime(2024, 2, 29, 0, 0, tzinfo=UTC)),
        ("@daily", datetime(2024, 1, 2, 0, 0, tzinfo=UTC)),
        ("@every 1h30m", datetime(2024, 1, 1, 13, 30, tzinfo=UTC)),
        ("0 0 31 2 *", None),
    ],
)
def test_the_next_time_of_a_cron_expression(text: str, expected: datetime | None) -> None:
    assert parse_cron(text).next(MONDAY) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8"),
        *("5-1 * * * *", "*/0 * * * *", "*-5 * * * *", "x * * * *", "* * * * xyz", "@never", "@every x"),
        "1,,2 * * * *",
    ],
)
def test_what_is_no_cron_expression(text: str) -> None:
    with pytest.raises(ValueError, match=".+"):
        parse_cron(text)


@given(st.text(alphabet="0123456789*/,-? @adeilmnorvy", max_size=30))
def test_every_text_is_a_cron_expression_or_a_value_error(text: str) -> None:
    try:
        cron = parse_cron(text)
    except ValueError:
        return
    found = cron.next(MONDAY)
    assert found is None or found > MONDAY
