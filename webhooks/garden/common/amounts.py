"""Durations with bounds, in Go's format, and numbers that may be percentages."""

from collections.abc import Iterator

from kube.clock import format_duration, parse_duration
from kube.objects import text
from kube.validation import FieldError, invalid


def duration_errors(path: str, value: object, least: float, most: float | None) -> Iterator[FieldError]:
    seconds = _seconds(value)
    if seconds is None:
        return
    if seconds < least:
        yield invalid(path, text(value), f"must not be less than {format_duration(least)}")
    if most is not None and seconds > most:
        yield invalid(path, text(value), f"must not be greater than {format_duration(most)}")


def _seconds(value: object) -> float | None:
    try:
        return parse_duration(value) if isinstance(value, str) else None
    except ValueError:
        return None


def share_problem(value: object, *, may_exceed: bool = False) -> str:
    """Return the problem of a number or percentage; empty if there is none.

    With `may_exceed` it may be more than 100 %, for values that are added to something.
    """
    if isinstance(value, int) and value < 0:
        return "must be greater than or equal to 0"
    if isinstance(value, str):
        digits = value.removesuffix("%")
        if not value.endswith("%") or not digits.isascii() or not digits.isdigit():
            return "must be a number, or a percentage such as 10%"
        if not may_exceed and (len(digits) > 3 or int(digits) > 100):
            return "must not be greater than 100%"
    return ""
