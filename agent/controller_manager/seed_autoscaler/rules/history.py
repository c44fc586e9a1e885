"""What was wanted in the windows of stabilization.

What is wanted holds until the next look. Of all values only those are kept that can still be the highest, or the
lowest, of a window that ends now: so there are at most as many as there are different values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import ge, le

Spans = tuple[tuple[datetime, int], ...]
"""Until when it was so, and the value; the last one holds now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    since: datetime | None = None
    """When the first look was; None: there was none."""
    highest: Spans = ()
    """Falling."""
    lowest: Spans = ()
    """Rising."""

    def recorded(self, value: int, now: datetime, *, keep: timedelta) -> "History":
        """Args: keep: the longest window."""
        return History(
            since=self.since or now,
            highest=_recorded(self.highest, value, now, keep, dominates=ge),
            lowest=_recorded(self.lowest, value, now, keep, dominates=le),
        )

    def fewer_from(self, present: int, window: timedelta) -> datetime | None:
        """From when on fewer than at present were wanted for a whole window; None: more are wanted now, or as many."""
        return self._from(self.highest, window, lambda value: value >= present)

    def more_from(self, present: int, window: timedelta) -> datetime | None:
        """The same for more."""
        return self._from(self.lowest, window, lambda value: value <= present)

    def highest_in(self, window: timedelta, now: datetime) -> int:
        """There must have been a look."""
        return _within(self.highest, window, now)[0][1]

    def lowest_in(self, window: timedelta, now: datetime) -> int:
        """There must have been a look."""
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
    """Those that did not end before it began."""
    return (*(span for span in spans[:-1] if span[0] > now - window), spans[-1])
