"""Schedule of saving the state of a Shoot: pure."""

from datetime import datetime, timedelta

from gardener.garden.shoots import last_operation, operation_of
from gardener.operations import CREATE, MIGRATE, RESTORE
from kube.clock import time_or_none
from kube.objects import Object, is_deleting


def is_savable(shoot: Object) -> bool:
    """Whether the Shoot is created and stays; a migration saves the state itself, after checking the previous one."""
    last = last_operation(shoot)
    is_created = bool(last) and (last.get("type") != CREATE or last.get("state") == "Succeeded")
    return is_created and not is_deleting(shoot) and operation_of(shoot) not in {MIGRATE, RESTORE}


def due_in(time: str, period: float, *, now: datetime) -> float:
    """Seconds until the next save; 0: now. Args: time: of the last save."""
    saved = time_or_none(time)
    if saved is None or saved > now:
        return 0.0
    return max((saved + timedelta(seconds=period) - now).total_seconds(), 0.0)
