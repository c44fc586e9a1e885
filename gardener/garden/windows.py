"""Daily windows of time, as `spec.maintenance.timeWindow` of a Shoot has them: `220000+0100` to `230000+0100`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

DAY = timedelta(days=1)
SHORTEST, LONGEST = timedelta(minutes=30), timedelta(hours=6)
_MOMENT = re.compile(r"(\d\d)(\d\d)(\d\d)([+-])(\d\d)(\d\d)", re.ASCII)
_MOST_PARSED = 1024
"""Cached moments, and windows."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Occurrence of a window on some day; UTC, both ends included."""

    begin: datetime
    end: datetime

    def contains(self, moment: datetime) -> bool:
        return self.begin <= moment.replace(microsecond=0) <= self.end


@dataclass(frozen=True, slots=True)
class Window:
    """Begin and end since midnight, UTC. A window that ends when it begins, or before that, ends on the next day."""

    begin: timedelta
    end: timedelta

    @property
    def length(self) -> timedelta:
        return self.end - self.begin if self.end > self.begin else self.end - self.begin + DAY

    def contains(self, moment: timedelta) -> bool:
        """Whether a moment is in the window. Args: moment: since midnight, UTC. The end is excluded."""
        return (moment - self.begin) % DAY < self.length

    def latest(self, now: datetime) -> Occurrence:
        """The last occurrence that has begun; it may have ended."""
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        begin = midnight + self.begin
        return self._on(begin if begin <= now else begin - DAY)

    def following(self, now: datetime) -> Occurrence:
        """The next occurrence that has yet to begin."""
        return self._on(self.latest(now).begin + DAY)

    def _on(self, begin: datetime) -> Occurrence:
        return Occurrence(begin, begin + self.length)


@lru_cache(maxsize=_MOST_PARSED)
def parse_moment(text: str) -> timedelta:
    """Time since midnight, UTC, of `HHMMSS+ZZZZ`.

    Raises:
        ValueError: the text is invalid.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError("must be of the form HHMMSS+ZZZZ, such as 220000+0100")
    hours, minutes, seconds, ahead, behind = (int(match[i]) for i in (1, 2, 3, 5, 6))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError("is not a valid time of day")
    if ahead > 24 or behind > 59:
        raise ValueError("is not a valid offset to UTC")
    offset = timedelta(hours=ahead, minutes=behind)
    local = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return (local - offset if match[4] == "+" else local + offset) % DAY


@lru_cache(maxsize=_MOST_PARSED)
def parse_window(begin: str, end: str) -> Window:
    """Parse a window.

    Raises:
        ValueError: begin or end is invalid.
    """
    return Window(parse_moment(begin), parse_moment(end))
