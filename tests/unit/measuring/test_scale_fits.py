"""How `python -m benchmarks scale` finds the slope of a cost."""

from dataclasses import astuple

import pytest

from benchmarks.fits import marginal, power, steps

COUNTS = (10.0, 100.0, 300.0, 1000.0, 5000.0)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.3, 2.0])
def test_the_exponent_of_a_power_is_found(exponent: float) -> None:
    fit = power([(count, 3.0 * count**exponent) for count in COUNTS])
    assert fit is not None
    assert fit.exponent == pytest.approx(exponent)
    assert fit.factor == pytest.approx(3.0)


def test_costs_of_nothing_are_left_out() -> None:
    fit = power([(1.0, 0.0), (10.0, 10.0), (100.0, 100.0)])
    assert fit is not None
    assert astuple(fit) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("points", [[], [(1.0, 1.0)], [(2.0, 1.0), (2.0, 3.0)], [(1.0, 0.0), (2.0, 0.0)]])
def test_too_few_points_have_no_exponent(points: list[tuple[float, float]]) -> None:
    assert power(points) is None


def test_one_more_costs_the_slope_whatever_there_is_at_the_start() -> None:
    assert marginal([(count, 60.0 + 0.25 * count) for count in COUNTS]) == pytest.approx(0.25)
    assert marginal([(1.0, 1.0)]) is None
    assert marginal([]) is None


def test_a_cost_that_begins_to_grow_faster_shows_in_the_last_steps() -> None:
    assert steps([(1.0, 1.0), (10.0, 10.0), (100.0, 1000.0)]) == pytest.approx([1.0, 2.0])
