"""Durations with bounds, as Go writes them."""

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
