"""Which Shoots wait for the scheduler, and what their status says about it."""

from gardener.garden.shoots import last_operation
from kube.objects import Object, is_deleting, spec, text

_SCHEDULER = "default-scheduler"
_FAILED = "Failed to schedule Shoot: "


def waits(shoot: Object) -> bool:
    """Whether it is for this scheduler to find it a Seed."""
    wanted = spec(shoot)
    is_ours = text(wanted.get("schedulerName")) in {"", _SCHEDULER}
    return is_ours and not wanted.get("seedName") and not is_deleting(shoot)


def failed_to_schedule(reason: str) -> str:
    """How status and Events say it."""
    return f"{_FAILED}{reason}"


def is_told_of_failure(shoot: Object) -> bool:
    """Whether the last operation is what the scheduler has written when it found no Seed."""
    last = last_operation(shoot)
    kind, state = last.get("type"), last.get("state")
    return (kind, state) == ("Create", "Pending") and text(last.get("description")).startswith(_FAILED)
