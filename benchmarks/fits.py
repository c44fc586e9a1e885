"""How a cost grows with the number of things: pure functions."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Fit:
    """`cost = factor * count ** exponent`, the straight line in a diagram with logarithmic axes."""

    exponent: float
    factor: float


def power(points: Sequence[tuple[float, float]]) -> Fit | None:
    """By least squares of the logarithms; None for fewer than two counts, or costs that are not above 0."""
    logs = [(math.log(count), math.log(cost)) for count, cost in points if count > 0 and cost > 0]
    line = _line(logs)
    return None if line is None else Fit(exponent=line[1], factor=math.exp(line[0]))


def marginal(points: Sequence[tuple[float, float]]) -> float | None:
    """What one more costs: the slope of the line through all points."""
    line = _line(points)
    return None if line is None else line[1]


def steps(points: Sequence[tuple[float, float]]) -> list[float]:
    """The exponent from each point to the next: a cost that begins to grow faster shows in the last ones."""
    fits = [power(pair) for pair in pairwise(points)]
    return [fit.exponent for fit in fits if fit is not None]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Its height at 0, and its slope; None if all points are at one place."""
    if len({x for x, _ in points}) < 2:
        return None
    slope, height = statistics.linear_regression(*zip(*points, strict=True))
    return height, slope
