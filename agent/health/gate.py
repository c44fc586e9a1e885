"""Whether a ManagedResource is to be checked now: the same for health and progress."""

from enum import Enum, auto

from agent.health import keys
from kube.objects import Object, annotations, condition, is_deleting, is_truthy

DEFAULT_CLASS = "resources"
ALL_CLASSES = "*"


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


def is_ignored(managed_resource: Object) -> bool:
    return is_truthy(annotations(managed_resource).get(keys.IGNORE))


def class_of(managed_resource: Object) -> str | None:
    found: str | None = (managed_resource.get("spec") or {}).get("class")
    return found


def is_responsible(managed_resource: Object, *, resource_class: str) -> bool:
    if resource_class == ALL_CLASSES:
        return True
    return (class_of(managed_resource) or DEFAULT_CLASS) == resource_class


def finalizer(resource_class: str) -> str:
    """The finalizer of the instance that handles this class."""
    if resource_class in {DEFAULT_CLASS, ALL_CLASSES}:
        return keys.FINALIZER
    return f"{keys.FINALIZER}-{resource_class}"


def applied_status(managed_resource: Object) -> str | None:
    """The status of the condition that everything was applied; None without that condition."""
    found = condition(managed_resource, keys.RESOURCES_APPLIED)
    return None if found is None else found.get("status")
