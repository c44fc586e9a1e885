"""Times and durations in the formats of Go and the API server."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Generic, TypeVar

K = TypeVar("K")

_DURATION_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([^0-9.]*)")
_USUAL_LENGTH = 16
"""Longest duration that is cached: most objects have the same few."""
_UNIT_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}


def parse_duration(text: str) -> float:
    """Seconds of a Go duration such as `1h30m`, `-1.5h`, `300ms`, `0`.

    Raises: ValueError: with the message of Go's time.ParseDuration.
    """
    return _remembered(text) if len(text) <= _USUAL_LENGTH else _parsed(text)


def _parsed(text: str) -> float:
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    total, at = Decimal(0), 0
    while at < len(rest):
        part = _DURATION_PART.match(rest, at)
        if part is None:
            raise ValueError(f"time: invalid duration {_quoted(text)}")
        number, unit = part.groups()
        if not unit:
            raise ValueError(f"time: missing unit in duration {_quoted(text)}")
        if unit not in _UNIT_NANOSECONDS:
            raise ValueError(f"time: unknown unit {_quoted(unit)} in duration {_quoted(text)}")
        total += Decimal(number) * _UNIT_NANOSECONDS[unit]
        at = part.end()
    if total >= 2**63 + (sign == "-"):
        raise ValueError(f"time: invalid duration {_quoted(text)}")
    return float(total / 10**9) * (-1 if sign == "-" else 1)


_remembered = lru_cache(maxsize=1024)(_parsed)


def _quoted(text: str) -> str:
    """Quote like package time of Go: anything but plain ASCII as the hexadecimal digits of its bytes."""
    plain = (chr(byte) if 0x20 <= byte < 0x80 else f"\\x{byte:02x}" for byte in text.encode())
    return '"' + "".join(f"\\{char}" if char in '"\\' else char for char in plain) + '"'


def format_duration(seconds: float) -> str:
    """Format a duration like Go: `1m0s`, `1h0m0s`, `1.5s`, `250ms`, `0s`."""
    nanoseconds = round(abs(seconds) * 1e9)
    sign = "-" if seconds < 0 and nanoseconds else ""
    if nanoseconds == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if nanoseconds < size * 1000 and nanoseconds < 10**9:
            return f"{sign}{_trim(Decimal(nanoseconds) / size)}{unit}"
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_trim(Decimal(rest) / 10**9)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _trim(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def utc_now() -> datetime:
    return datetime.now(UTC)


def parse_time(text: str) -> datetime:
    """Parse an RFC 3339 time, as the API server writes it. Raises ValueError."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def time_or_none(value: object) -> datetime | None:
    """Parse a time; None if it is missing or invalid."""
    try:
        return parse_time(value) if isinstance(value, str) else None
    except ValueError:
        return None


def format_time(moment: datetime) -> str:
    """Format as RFC 3339 in UTC, to the second, like metav1.Time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(moment: datetime) -> str:
    """Format as RFC 3339 in UTC, to the microsecond, like metav1.MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_until(moment: datetime, now: datetime, *, longest: float) -> float:
    """Seconds until a moment: at least 0, and at most `longest`.

    Clocks of different machines differ, by hours at times. A wait until a moment that another machine has written must
    not exceed the period that ends at the moment.
    """
    return min(max((moment - now).total_seconds(), 0.0), longest)


class FirstSeen(Generic[K]):
    """Last moment per key that other machines have written, but not later than when it was first observed here.

    So periods that start there end in time even if those clocks are ahead.
    """

    def __init__(self) -> None:
        self._known: dict[K, tuple[datetime, datetime]] = {}

    def of(self, key: K, moment: datetime, *, now: datetime) -> datetime:
        known = self._known.get(key)
        if known is None or known[0] != moment:
            known = self._known[key] = (moment, now)
        return min(known)

    def forget(self, key: K) -> None:
        self._known.pop(key, None)


def short_duration(seconds: float) -> str:
    """Format with at most two units, and the smaller one only while it is significant: `90s`, `3m5s`, `47h`, `2d3h`,
    `400d`.
    """
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else "<invalid>"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two_units(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two_units(great: int, unit: str, small: int, small_unit: str) -> str:
    return f"{great}{unit}{small}{small_unit}" if small else f"{great}{unit}"
