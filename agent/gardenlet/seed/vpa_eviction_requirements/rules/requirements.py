"""Eviction requirements of a VerticalPodAutoscaler, and the time of their next change.

    never                        pods are evicted only to scale up
    in-maintenance-window-only   the same outside of the maintenance window; inside, pods may also be scaled down

The window counts from five minutes before it begins until five minutes before it ends: an eviction takes a while.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gardener import keys
from gardener.garden.windows import Window, parse_window
from kube.objects import Object

NEVER = "never"
IN_WINDOW_ONLY = "in-maintenance-window-only"
ONLY_MORE: list[Object] = [{"resources": ["memory", "cpu"], "changeRequirement": "TargetHigherThanRequests"}]
"""The requirement, ordered as by the original."""
_EARLIER = timedelta(minutes=5)


class RestrictionError(Exception):
    """The annotations are invalid; the message has the reason."""


@dataclass(frozen=True, slots=True)
class Required:
    requirements: list[Object]
    """All requirements."""
    until: datetime | None = None
    """Time of the next change; None if only a change of the annotations changes them."""


def required(annotations: Mapping[str, str], *, now: datetime) -> Required:
    """Return the requirements.

    Raises:
        RestrictionError: the annotations are invalid.
    """
    restriction = annotations.get(keys.DOWNSCALE_RESTRICTION, "")
    if restriction == NEVER:
        return Required(ONLY_MORE)
    if restriction != IN_WINDOW_ONLY:
        raise RestrictionError(
            f'annotation {keys.DOWNSCALE_RESTRICTION} is "{restriction}"; set it to {NEVER} or {IN_WINDOW_ONLY}'
        )
    window, moment = _window(annotations), now.astimezone(UTC) + _EARLIER
    latest = window.latest(moment)
    if moment < latest.end:
        return Required([], latest.end - _EARLIER)
    return Required(ONLY_MORE, window.following(moment).begin - _EARLIER)


def _window(annotations: Mapping[str, str]) -> Window:
    begin, comma, end = annotations.get(keys.MAINTENANCE_WINDOW, "").partition(",")
    try:
        if not comma:
            raise ValueError("is missing or has no comma")
        return parse_window(begin, end)
    except ValueError as error:
        raise RestrictionError(
            f"annotation {keys.MAINTENANCE_WINDOW} {error}; set it to begin and end of the maintenance window, such as"
            " 220000+0100,230000+0100"
        ) from error
