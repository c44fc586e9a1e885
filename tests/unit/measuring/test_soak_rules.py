"""The rules by which `python -m benchmarks soak` separates growth from noise."""

import random

import pytest

from benchmarks.soak_rules import assess

HOUR = [(minute * 60.0, 100.0) for minute in range(61)]


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
    found = assess(series, curve)
    assert found.is_flat is is_flat
    assert found.an_hour == pytest.approx(grows_an_hour, abs=0.1)
    assert found.growth == pytest.approx(found.an_hour)


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
def test_levels_have_to_return_when_idle(series: str, before: float, after: float, returned: bool) -> None:
    found = assess(series, HOUR, before=[(0.0, before)], after=[(0.0, after), (1.0, after), (2.0, 1e9)])
    assert found.has_returned is returned
