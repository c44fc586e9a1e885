"""The rules by which `python -m benchmarks soak` tells growth from noise."""

import json
import random

import pytest

from benchmarks.sampling import SERIES, Sample, sums_of
from benchmarks.soak_rules import GROWTH, RETURN, Tolerance, between, judge, slope, unexpected

HOUR = [(minute * 60.0, 100.0) for minute in range(61)]


def sample(at: float, **levels: float) -> Sample:
    nothing = {"resident": 0, "files": 0, "threads": 0, "cpu": 0, "calls": 0, "tasks": 0, "watches": 0, "queued": 0}
    return Sample(at=at, **(nothing | levels))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([], 0.0),
        ([(0.0, 5.0)], 0.0),
        ([(1.0, 5.0), (1.0, 9.0)], 0.0),
        ([(0.0, 1.0), (10.0, 21.0)], 2.0),
        ([(0.0, 3.0), (1.0, 2.0), (2.0, 1.0)], -1.0),
        (HOUR, 0.0),
    ],
)
def test_the_slope_is_what_values_grow_by_in_a_second(curve: list[tuple[float, float]], expected: float) -> None:
    assert slope(curve) == pytest.approx(expected)


def test_wild_points_do_not_move_the_slope() -> None:
    curve = [(at, 50.0 + at * 0.01) for at in range(100)]
    curve[::11] = [(at, 5000.0) for at, _ in curve[::11]]
    assert slope(curve) == pytest.approx(0.01, rel=0.05)


def test_steps_up_and_down_are_flat() -> None:
    curve = [(float(at), 20.0 + at % 7) for at in range(1000)]
    assert slope(curve) == pytest.approx(0.0, abs=1e-4)


def test_a_long_curve_is_thinned_out() -> None:
    assert slope([(float(at), 3.0 * at) for at in range(20_000)]) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("series", "grows_an_hour", "is_flat"),
    [
        ("RSS, MiB", 0.0, True),
        ("RSS, MiB", 2.9, True),
        ("RSS, MiB", 3.1, False),
        ("RSS, MiB", -50.0, True),
        ("file descriptors", 0.9, True),
        ("file descriptors", 1.1, False),
        ("tasks", 1.9, True),
        ("tasks", 2.1, False),
        ("watches", 1.0, False),
        ("threads", 1.0, False),
        ("API calls a minute", 9.9, True),
        ("API calls a minute", 20.0, False),
        ("CPU, % of a core", 30.0, False),
    ],
)
def test_growth_beyond_the_tolerance_is_found_in_spite_of_noise(
    series: str, grows_an_hour: float, is_flat: bool
) -> None:
    noise = random.Random(7)
    curve = [(at, 100.0 + grows_an_hour * at / 3600 + noise.uniform(-0.1, 0.1)) for at, _ in HOUR]
    found = judge(series, curve)
    assert found.is_flat is is_flat
    assert found.an_hour == pytest.approx(grows_an_hour, abs=0.1)
    assert found.growth == pytest.approx(found.an_hour)


def test_growth_counts_for_the_time_that_is_judged() -> None:
    half = [(at, 100.0 + 4.0 * at / 3600) for at, _ in HOUR[:31]]
    found = judge("RSS, MiB", half)
    assert found.an_hour == pytest.approx(4.0)
    assert found.growth == pytest.approx(2.0)
    assert found.is_flat


@pytest.mark.parametrize(
    ("series", "before", "after", "returned"),
    [
        ("file descriptors", 20.0, 23.0, True),
        ("file descriptors", 20.0, 24.0, False),
        ("watches", 20.0, 21.0, True),
        ("watches", 20.0, 22.0, False),
        ("tasks", 60.0, 64.0, False),
        ("RSS, MiB", 70.0, 83.9, True),
        ("RSS, MiB", 70.0, 84.1, False),
        ("keys waiting", 0.0, 1.0, False),
        ("CPU, % of a core", 1.0, 50.0, True),
    ],
)
def test_levels_have_to_return_at_rest(series: str, before: float, after: float, returned: bool) -> None:
    found = judge(series, HOUR, before=[(0.0, before)], after=[(0.0, after), (1.0, after), (2.0, 1e9)])
    assert found.has_returned is returned


def test_without_samples_at_rest_there_is_nothing_to_return_to() -> None:
    assert judge("watches", HOUR).has_returned
    assert judge("watches", []).is_flat


def test_all_series_have_a_tolerance() -> None:
    assert SERIES.keys() == GROWTH.keys() >= RETURN.keys()


def test_a_tolerance_is_a_share_but_never_less_than_its_least() -> None:
    assert Tolerance(0.1, 5.0).of(10.0) == 5.0
    assert Tolerance(0.1, 5.0).of(100.0) == 10.0


def test_a_part_of_a_curve_includes_its_ends() -> None:
    assert between([(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], 1.0, 2.0) == [(1.0, 1.0), (2.0, 2.0)]


def test_rates_are_told_by_the_minute() -> None:
    samples = [sample(at, calls=at * 2, cpu=at / 4) for at in range(0, 200, 5)]
    assert SERIES["API calls a minute"](samples) == [(60.0, 120.0), (120.0, 120.0), (180.0, 120.0)]
    assert SERIES["CPU, % of a core"](samples) == [(60.0, 25.0), (120.0, 25.0), (180.0, 25.0)]


def test_series_of_a_metric_are_added_up() -> None:
    text = '# HELP a b\na{x="1"} 2\na{x="2 {"} 3.5\nb 1e3\n\n'
    assert sums_of(text) == {"a": 5.5, "b": 1000.0}


def entry(level: str, message: str, **more: str) -> str:
    return json.dumps({"level": level, "msg": message, **more})


def test_errors_in_logs_are_counted_but_for_those_expected() -> None:
    lines = [
        entry("info", "Objects were changed", error="connection reset"),
        entry("debug", "x"),
        *(entry("error", "Reconciler error", error=error) for error in ("connection reset by peer", "boom", "boom")),
        *("Traceback (most recent call last):", "", '"text"'),
    ]
    found = unexpected(lines, expected=["connection reset"])
    assert found == {"Reconciler error": 2, "Traceback (most recent call last):": 1, '"text"': 1}
