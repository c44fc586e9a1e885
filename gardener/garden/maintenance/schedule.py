"""When a Shoot is maintained: at a random time of each occurrence of its time window, and when a user asks for it.

The window of work ends a while before the one that the user knows, since what is begun takes time.
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
"""A random number between two."""


def time_window(shoot: Object) -> Object:
    return mapping_at(shoot, "spec", "maintenance", "timeWindow")


def effective_window(shoot: Object) -> Window:
    """In which maintenance begins; always, if the Shoot has no window that can be read."""
    given = time_window(shoot)
    try:
        window = parse_window(text(given.get("begin")), text(given.get("end")))
    except ValueError:
        return _ALWAYS
    # One that is hardly longer than this the API server does not take.
    return Window(window.begin, window.end - _TIME_TO_FINISH) if window.length > _TIME_TO_FINISH else window


def is_asked_for(shoot: Object) -> bool:
    return annotations(shoot).get(keys.OPERATION) == keys.OPERATION_MAINTAIN


def current(shoot: Object, now: datetime) -> Occurrence | None:
    """The occurrence of the window that it is time for."""
    latest = effective_window(shoot).latest(now)
    return latest if latest.contains(now) else None


def is_due(shoot: Object, now: datetime) -> bool:
    """Whether it is to be maintained now.

    What has left a mark in this occurrence of the window has been maintained, unless it was not finished. A pass that
    changed nothing leaves none.
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
    """Until some moment of the next occurrence, so that not all Shoots with the same window are maintained at once."""
    return _seconds_into(following(shoot, now), now, uniform)


def seconds_at_start(shoot: Object, now: datetime, uniform: Uniform) -> float:
    """How long a process that has just begun to lead waits before it looks at a Shoot.

    Which Shoots have been maintained in this occurrence of the window is not known of those that needed no change. So
    that not all of them are reconciled at once, they are spread over what is left of it.
    """
    if is_asked_for(shoot) or not is_due(shoot, now):
        return 0.0
    return seconds_left(shoot, now, uniform)


def seconds_left(shoot: Object, now: datetime, uniform: Uniform) -> float:
    """Until some moment of what is left of the present occurrence of the window; 0 outside."""
    occurrence = current(shoot, now)
    return 0.0 if occurrence is None else _seconds_into(Occurrence(now, max(now, occurrence.end)), now, uniform)


def _seconds_into(occurrence: Occurrence, now: datetime, uniform: Uniform) -> float:
    begin, end = (occurrence.begin - now).total_seconds(), (occurrence.end - now).total_seconds()
    return uniform(begin, end)
