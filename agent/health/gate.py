"""Whether a ManagedResource is to be checked now: the same for health and progress."""

from enum import Enum, auto

from agent.health import keys
from agent.responsibility import is_ignored, is_responsible
from kube.objects import Object, condition, is_deleting


class Gate(Enum):
    CHECK = auto()
    WAIT = auto()
    """Not applied yet; look again after the sync period, and an event will come as well."""
    STOP = auto()
    """Nothing to do here until an event brings it back."""


def gate(managed_resource: Object, *, resource_class: str) -> Gate:
    if (
        is_ignored(managed_resource)
        or not is_responsible(managed_resource, resource_class=resource_class)
        or is_deleting(managed_resource)
    ):
        return Gate.STOP
    return Gate.WAIT if applied_status(managed_resource) in {None, "Progressing", "False"} else Gate.CHECK


def applied_status(managed_resource: Object) -> str | None:
    """The status of the condition that everything was applied; None without that condition."""
    found = condition(managed_resource, keys.RESOURCES_APPLIED)
    return None if found is None else found.get("status")
