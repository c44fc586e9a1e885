"""When the state of a Shoot is saved: pure."""

from datetime import datetime, timedelta

from gardener.garden.shoots import last_operation, operation_of
from gardener.operations import CREATE, MIGRATE, RESTORE
from kube.clock import time_or_none
from kube.objects import Object, is_deleting


def is_savable(shoot: Object) -> bool:
    """Not before it was created; and not while it moves, since then its state is saved with care for what was."""
    last = last_operation(shoot)
    is_created = bool(last) and (last.get("type") != CREATE or last.get("state") == "Succeeded")
    return is_created and not is_deleting(shoot) and operation_of(shoot) not in {MIGRATE, RESTORE}


def due_in(time: str, period: float, *, now: datetime) -> float:
    """Seconds until it is to be saved again; 0: now. Args: time: when it was saved last."""
    saved = time_or_none(time)
    if saved is None or saved > now:
        return 0.0
    return max((saved + timedelta(seconds=period) - now).total_seconds(), 0.0)
