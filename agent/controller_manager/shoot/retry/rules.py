"""When a Shoot is retried: after a period that doubles with each retry in a row."""

from datetime import datetime, timedelta

from gardener.garden.shoots import FAILED, RATE_LIMITED, SUCCEEDED, error_codes, last_operation, met_rate_limit
from kube.clock import time_or_none
from kube.objects import Object, uid

MOST_RETRIES = 10
"""In a row: whoever asks for ever keeps meeting the limit."""
LONGEST_PERIOD = timedelta(hours=6)


def is_over(shoot: Object) -> bool:
    """Whether the operation has ended in another way, so that the next failure is the first one again."""
    return last_operation(shoot).get("state") in {SUCCEEDED, FAILED} and RATE_LIMITED not in error_codes(shoot)


def progress(shoot: Object) -> tuple[object, ...]:
    """What has to change for a Shoot to be looked at again."""
    failed_at = last_operation(shoot).get("lastUpdateTime") if met_rate_limit(shoot) else None
    return uid(shoot), failed_at, is_over(shoot)


def due(shoot: Object, *, retries: int, period: timedelta) -> datetime | None:
    """When the next retry is due; None: at once, since nobody knows when it failed."""
    failed_at = time_or_none(last_operation(shoot).get("lastUpdateTime"))
    return failed_at and failed_at + max(min(period * (1 << retries), LONGEST_PERIOD), period)
