"""The rules that a soak has to satisfy: pure functions of curves and log lines.

Under load a level has to be flat once the process has warmed up: its slope is the median of the slopes between all
pairs of points (Theil and Sen), which a tenth of wild points does not move, and its growth in the measured time has to
be within a tolerance. Idle after the load, levels have to match those idle before it.
"""

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.sampling import Curve

_MOST_POINTS = 400
"""The number of pairs grows with the square."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Growth that counts as none: a share of the level, and `least` in any case."""

    share: float
    least: float

    def of(self, level: float) -> float:
        return max(self.share * level, self.least)


GROWTH: Mapping[str, Tolerance] = {
    "RSS, MiB": Tolerance(0.03, 1.0),
    "file descriptors": Tolerance(0.0, 1.0),
    "threads": Tolerance(0.0, 0.5),
    "tasks": Tolerance(0.0, 2.0),
    "watches": Tolerance(0.0, 0.5),
    "keys waiting": Tolerance(0.0, 1.0),
    # The load is steady, but the machine is shared.
    "CPU, % of a core": Tolerance(0.25, 1.0),
    "API calls a minute": Tolerance(0.1, 10.0),
}
"""Tolerated growth in the whole checked time."""

RETURN: Mapping[str, Tolerance] = {
    # Python does not return all memory.
    "RSS, MiB": Tolerance(0.2, 5.0),
    "file descriptors": Tolerance(0.0, 3.0),
    # Threads of a pool stay; there are a few at most.
    "threads": Tolerance(0.0, 6.0),
    "tasks": Tolerance(0.0, 3.0),
    "watches": Tolerance(0.0, 1.0),
    "keys waiting": Tolerance(0.0, 0.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result for one level of one process."""

    series: str
    before: float | None
    middle: float
    highest: float
    an_hour: float
    growth: float
    allowed: float
    after: float | None

    @property
    def is_flat(self) -> bool:
        return self.growth <= self.allowed

    @property
    def has_returned(self) -> bool:
        tolerance = RETURN.get(self.series)
        if tolerance is None or self.before is None or self.after is None:
            return True
        return self.after <= self.before + tolerance.of(self.before)


def slope(curve: Curve) -> float:
    """Growth of the values per second; 0 for fewer than two points."""
    points = curve[:: len(curve) // _MOST_POINTS + 1]
    slopes = [
        (value - earlier) / (at - before)
        for index, (at, value) in enumerate(points)
        for before, earlier in points[:index]
        if at > before
    ]
    return statistics.median(slopes) if slopes else 0.0


def between(curve: Curve, begin: float, end: float) -> Curve:
    return [(at, value) for at, value in curve if begin <= at <= end]


def assess(series: str, curve: Curve, *, before: Curve = (), after: Curve = ()) -> Finding:
    """Assess a curve under load, without the time to warm up; `before` and `after` are idle."""
    values = [value for _, value in curve] or [0.0]
    middle = statistics.median(values)
    found = slope(curve)
    seconds = curve[-1][0] - curve[0][0] if curve else 0.0
    return Finding(
        series=series,
        before=_middle(before),
        middle=middle,
        highest=max(values),
        an_hour=found * 3600,
        growth=found * seconds,
        allowed=GROWTH[series].of(middle),
        after=_middle(after),
    )


def _middle(curve: Curve) -> float | None:
    return statistics.median(value for _, value in curve) if curve else None


def unexpected(lines: Iterable[str], *, expected: Sequence[str]) -> Counter[str]:
    """Messages of errors, and lines that are no log entries, unless one of the regular expressions matches the line."""
    patterns = [re.compile(pattern) for pattern in expected]
    found: Counter[str] = Counter()
    for line in lines:
        message = _complaint(line)
        if message and not any(pattern.search(line) for pattern in patterns):
            found[message] += 1
    return found


def _complaint(line: str) -> str | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return line.strip() or None
    if not isinstance(entry, dict):
        return line
    return str(entry.get("msg") or line) if entry.get("level") not in {"debug", "info"} else None
