"""Recommended numbers in the windows of stabilization.

A number holds until the next observation. Only those values are kept that can still be the highest, or the lowest, of a
window that ends now: so there are at most as many as there are different values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import ge, le

Spans = tuple[tuple[datetime, int], ...]
"""End of each span, and its value; the last one holds now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    since: datetime | None = None
    """Time of the first observation; None if there was none."""
    highest: Spans = ()
    """Highest values, falling."""
    lowest: Spans = ()
    """Lowest values, rising."""

    def recorded(self, value: int, now: datetime, *, keep: timedelta) -> "History":
        """History with another value; `keep` is the longest window."""
        return History(
            since=self.since or now,
            highest=_recorded(self.highest, value, now, keep, dominates=ge),
            lowest=_recorded(self.lowest, value, now, keep, dominates=le),
        )

    def fewer_from(self, present: int, window: timedelta) -> datetime | None:
        """Time from which fewer than at present were wanted for a whole window; None if more are wanted now, or as
        many.
        """
        return self._from(self.highest, window, lambda value: value >= present)

    def more_from(self, present: int, window: timedelta) -> datetime | None:
        """Time from which more than at present were wanted for a whole window; None if fewer are wanted now, or as
        many.
        """
        return self._from(self.lowest, window, lambda value: value <= present)

    def highest_in(self, window: timedelta, now: datetime) -> int:
        """Highest value in the window; requires an observation."""
        return _within(self.highest, window, now)[0][1]

    def lowest_in(self, window: timedelta, now: datetime) -> int:
        """Lowest value in the window; requires an observation."""
        return _within(self.lowest, window, now)[0][1]

    def _from(self, spans: Spans, window: timedelta, disagrees: Callable[[int], bool]) -> datetime | None:
        if self.since is None or disagrees(spans[-1][1]):
            return None
        return max([self.since, *(until for until, value in spans if disagrees(value))]) + window


def _recorded(
    spans: Spans, value: int, now: datetime, keep: timedelta, *, dominates: Callable[[int, int], bool]
) -> Spans:
    kept = list(spans)
    if kept:
        kept[-1] = (now, kept[-1][1])
    while kept and dominates(value, kept[-1][1]):
        kept.pop()
    return _within((*kept, (now, value)), keep, now)


def _within(spans: Spans, window: timedelta, now: datetime) -> Spans:
    """Spans that overlap the window."""
    return (*(span for span in spans[:-1] if span[0] > now - window), spans[-1])
