"""Cron expressions with five fields, as Shoots have them in `spec.hibernation.schedules`.

    0 20 * * 1-5        minute, hour, day of the month, month, day of the week; also with names: `mon-fri`, `jan`
    @daily              and others: see DESCRIPTORS
    @every 1h30m        each time after this period

If both days are restricted, one of them suffices.

Expressions refer to the local time of a time zone, that of the moment which is passed in. Times in an hour that
daylight saving skips never occur; those in an hour that it repeats occur twice.

Libraries of Python differ. In cronsim 2.8 and croniter 7.0, `30 2 * * *` in Berlin occurs on 2024-03-31, at 03:00.
cronsim, given a field for seconds, skips that, but also skips `0 2 * * *` on Lord Howe on 2024-04-07, where clocks
change by half an hour. Both accept expressions that the original refuses (7 for Sunday, `L`) and refuse others that it
accepts: `@every`, days that never occur; cronsim also `?` and `@daily`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from kube.clock import parse_duration

DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: i + 1 for i, name in enumerate(_MONTH_NAMES)}
_DAYS = {name: i for i, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_NO_NAMES: Mapping[str, int] = {}
_BOUNDS = ((0, 59, _NO_NAMES), (0, 23, _NO_NAMES), (1, 31, _NO_NAMES), (1, 12, _MONTHS), (0, 6, _DAYS))
_NAMES = ("minute", "hour", "day of the month", "month", "day of the week")
_PART = re.compile(r"(\*|\?|\w+)(?:-(\w+))?(?:/(\d{1,9}))?", re.ASCII)
_YEARS = 5
"""Years that are searched for the next time."""
_MOST_PARSED = 1024
"""Cached expressions; most Shoots use the same few."""
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cron:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    any_day: bool
    any_weekday: bool

    def next(self, after: datetime) -> datetime | None:
        """The first later time, in the time zone of `after`; None if there is none within years."""
        found = self._next(after.astimezone(UTC), after.tzinfo or UTC)
        return None if found is None else found.astimezone(after.tzinfo)

    def last(self, after: datetime, until: datetime) -> datetime | None:
        """The last time later than `after` and not later than `until`, in the time zone of `until`.

        Searches backwards in growing steps, so that expressions with many times cost no more than those with few.
        """
        earliest, end, step = after.astimezone(UTC), until.astimezone(UTC), _HOUR
        zone = until.tzinfo or UTC
        while end > earliest:
            begin = max(earliest, end - step)
            found, moment = None, self._next(begin, zone)
            while moment is not None and moment <= end:
                found, moment = moment, self._next(moment, zone)
            if found is not None:
                return found.astimezone(zone)
            end, step = begin, step * 2
        return None

    def _next(self, after: datetime, zone: tzinfo) -> datetime | None:
        """The result of `next` in UTC, since local times of one zone cannot be compared and subtracted.

        Local time is continuous between two changes of the offset to UTC: the search goes from change to change.
        """
        moment = _whole_minute(after + _MINUTE)
        end = moment + timedelta(days=_YEARS * 366)
        while moment <= end:
            offset = _offset(zone, moment)
            shown = self._next_shown((moment + offset).replace(tzinfo=None))
            if shown is None:
                return None
            found = shown.replace(tzinfo=UTC) - offset
            change = _first_change(zone, moment, found)
            if change is None:
                return found
            moment = change
        return None

    def _next_shown(self, earliest: datetime) -> datetime | None:
        """The first time that is not earlier, both naive."""
        moment = _whole_minute(earliest + _MINUTE - timedelta.resolution)
        for _ in range(_YEARS * 366):
            if self._is_day(moment.day, moment.month, moment.isoweekday() % 7):
                found = self._first_time(moment.hour, moment.minute)
                if found is not None:
                    return moment.replace(hour=found[0], minute=found[1])
            moment = moment.replace(hour=0, minute=0) + _DAY
        return None

    def _first_time(self, hour: int, minute: int) -> tuple[int, int] | None:
        """First time of a day that is not earlier."""
        if hour in self.hours and (left := [each for each in self.minutes if each >= minute]):
            return hour, min(left)
        later = [each for each in self.hours if each > hour]
        return (min(later), min(self.minutes)) if later else None

    def times(self) -> Iterator[tuple[int, int]]:
        """Hours and minutes of a day, in order."""
        return ((hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes))

    def _is_day(self, day: int, month: int, weekday: int) -> bool:
        if month not in self.months:
            return False
        if self.any_day or self.any_weekday:
            return day in self.days and weekday in self.weekdays
        return day in self.days or weekday in self.weekdays


@dataclass(frozen=True, slots=True)
class Every:
    """A fixed period."""

    period: timedelta

    def next(self, after: datetime) -> datetime:
        return (after.astimezone(UTC) + self.period).replace(microsecond=0).astimezone(after.tzinfo)

    def last(self, after: datetime, until: datetime) -> datetime | None:
        """The last time, in periods from `after`."""
        since = after.astimezone(UTC).replace(microsecond=0)
        count = (until - since) // self.period
        return (since + count * self.period).astimezone(until.tzinfo) if count > 0 else None


def _whole_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _first_change(zone: tzinfo, begin: datetime, end: datetime) -> datetime | None:
    """First change of the zone's offset to UTC, later than `begin` and not later than `end`."""
    if isinstance(zone, timezone):
        return None
    offset = _offset(zone, begin)
    while begin < end:
        until = min(begin + _DAY, end)
        if _offset(zone, until) != offset:
            return _bisected(zone, begin, until)
        begin = until
    return None


def _bisected(zone: tzinfo, before: datetime, changed: datetime) -> datetime:
    """The moment of a change, at a whole minute."""
    offset = _offset(zone, before)
    while changed - before > _MINUTE:
        middle = before + _MINUTE * ((changed - before) // _MINUTE // 2)
        if _offset(zone, middle) == offset:
            before = middle
        else:
            changed = middle
    return changed


@lru_cache(maxsize=_MOST_PARSED)
def parse_cron(text: str) -> Cron | Every:
    """Parse an expression.

    Raises:
        ValueError: the expression is invalid.
    """
    if text.startswith("@"):
        return _described(text)
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{text}]")
    parts = zip(fields, _BOUNDS, _NAMES, strict=True)
    minutes, hours, days, months, weekdays = (_field(field, *bounds, name=name) for field, bounds, name in parts)
    every = [field[0] in "*?" for field in fields]
    return Cron(minutes, hours, days, months, weekdays, any_day=every[2], any_weekday=every[4])


def _described(text: str) -> Cron | Every:
    if text in DESCRIPTORS:
        return parse_cron(DESCRIPTORS[text])
    if text.startswith(_EVERY):
        seconds = parse_duration(text.removeprefix(_EVERY))
        return Every(timedelta(seconds=max(1, int(seconds))))
    raise ValueError(f"unrecognized descriptor: {text}")


def _field(text: str, low: int, high: int, names: Mapping[str, int], *, name: str) -> frozenset[int]:
    return frozenset(value for part in text.split(",") for value in _values(part, low, high, names, name=name))


def _values(part: str, low: int, high: int, names: Mapping[str, int], *, name: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is not a valid {name}")
    step = int(match[3]) if match[3] else 1
    if match[1] in "*?":
        if match[2]:
            raise ValueError(f"{part!r} is not a valid {name}")
        first, last = low, high
    else:
        first = _number(match[1], names, part, name)
        last = _number(match[2], names, part, name) if match[2] else high if match[3] else first
    if first < low or last > high or first > last or step < 1:
        raise ValueError(f"{part!r} is not a valid {name}; use {low} to {high}")
    return range(first, last + 1, step)


def _number(text: str, names: Mapping[str, int], part: str, name: str) -> int:
    if text.isdecimal() and len(text) <= 9:
        return int(text)
    if text.lower() in names:
        return names[text.lower()]
    raise ValueError(f"{part!r} is not a valid {name}")
