"""Maintenance times of a Shoot: a random time of each occurrence of its time window, and requests of users.

The internal window ends earlier than that of the user, since maintenance takes time.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from gardener import keys
from gardener.garden.windows import DAY, Occurrence, Window, parse_window
from kube.clock import parse_time
from kube.objects import Object, annotations, mapping, text
from kube.paths import at, mapping_at

PROCESSING = "Processing"
_TIME_TO_FINISH = timedelta(minutes=15)
_ALWAYS = Window(timedelta(0), DAY)

Uniform = Callable[[float, float], float]
"""Random number between two others."""


def time_window(shoot: Object) -> Object:
    return mapping_at(shoot, "spec", "maintenance", "timeWindow")


def effective_window(shoot: Object) -> Window:
    """Window in which maintenance begins; always, if the Shoot has no valid window."""
    given = time_window(shoot)
    try:
        window = parse_window(text(given.get("begin")), text(given.get("end")))
    except ValueError:
        return _ALWAYS
    # The API server refuses windows that are hardly longer than this.
    return Window(window.begin, window.end - _TIME_TO_FINISH) if window.length > _TIME_TO_FINISH else window


def is_asked_for(shoot: Object) -> bool:
    return annotations(shoot).get(keys.OPERATION) == keys.OPERATION_MAINTAIN


def current(shoot: Object, now: datetime) -> Occurrence | None:
    """The present occurrence of the window, if there is one."""
    latest = effective_window(shoot).latest(now)
    return latest if latest.contains(now) else None


def is_due(shoot: Object, now: datetime) -> bool:
    """Whether maintenance is due now.

    A Shoot with a mark in this occurrence of the window has been maintained, unless it is unfinished. A pass without
    changes leaves no mark.
    """
    if is_asked_for(shoot):
        return True
    occurrence = current(shoot, now)
    if occurrence is None:
        return False
    last = mapping(at(shoot, "status", "lastMaintenance"))
    try:
        triggered = parse_time(text(last.get("triggeredTime")))
    except ValueError:
        return True
    return last.get("state") == PROCESSING or not occurrence.contains(triggered)


def following(shoot: Object, now: datetime) -> Occurrence:
    """The next occurrence of the window that has yet to begin."""
    return effective_window(shoot).following(now)


def seconds_until_next(shoot: Object, now: datetime, uniform: Uniform) -> float:
    """Seconds to a random moment of the next occurrence, so that Shoots with the same window are spread."""
    return _seconds_into(following(shoot, now), now, uniform)


def seconds_at_start(shoot: Object, now: datetime, uniform: Uniform) -> float:
    """Seconds that a process waits for a Shoot after it became the leader.

    Shoots without changes have no mark of their maintenance in this occurrence of the window. To avoid that all of them
    are reconciled at once, they are spread over the rest of it.
    """
    if is_asked_for(shoot) or not is_due(shoot, now):
        return 0.0
    return seconds_left(shoot, now, uniform)


def seconds_left(shoot: Object, now: datetime, uniform: Uniform) -> float:
    """Seconds to a random moment of the rest of the present occurrence of the window; 0 outside."""
    occurrence = current(shoot, now)
    return 0.0 if occurrence is None else _seconds_into(Occurrence(now, max(now, occurrence.end)), now, uniform)


def _seconds_into(occurrence: Occurrence, now: datetime, uniform: Uniform) -> float:
    begin, end = (occurrence.begin - now).total_seconds(), (occurrence.end - now).total_seconds()
    return uniform(begin, end)
