"""Which events of a ManagedResource ask for a pass."""

from agent.managed_resource import keys
from agent.managed_resource.conditions import HEALTHY
from kube.cache import Change
from kube.objects import Object, annotations, condition, finalizers, is_deleting, is_truthy, metadata

_OPERATIONS = {keys.OPERATION_RECONCILE, keys.OPERATION_RESTORE, keys.OPERATION_MIGRATE}


def is_ignored(managed_resource: Object) -> bool:
    return is_truthy(annotations(managed_resource).get(keys.IGNORE))


def class_of(managed_resource: Object) -> str | None:
    return (managed_resource.get("spec") or {}).get("class")


def concerns(managed_resource: Object, *, resource_class: str) -> bool:
    """Whether it is ours by class, or still ours by finalizer."""
    if keys.finalizer_of(resource_class) in finalizers(managed_resource):
        return True
    return keys.is_responsible(resource_class, class_of(managed_resource))


def must_wait(managed_resource: Object, *, resource_class: str) -> bool:
    """Whether another class has to clean up first."""
    found = finalizers(managed_resource)
    return keys.must_wait(found, resource_class=resource_class, of=class_of(managed_resource))


def asks_for_pass(change: Change[Object], *, resource_class: str) -> bool:
    """Creations and deletions always do; updates only where something that a pass acts on has changed.

    Status updates, and any update of an ignored ManagedResource, would only cost a pass that finds nothing to do.
    """
    old, new = change.old, change.new
    subject = new if new is not None else old
    if subject is None or not (concerns(subject, resource_class=resource_class) or _left(old, new, resource_class)):
        return False
    if old is None or new is None:
        return True
    if is_ignored(old) != is_ignored(new):
        return True
    if is_ignored(new) and not is_deleting(new):
        return False
    return (
        metadata(old).get("generation") != metadata(new).get("generation")
        or annotations(new).get(keys.OPERATION) in _OPERATIONS
        or _became_unhealthy(old, new)
        or must_wait(old, resource_class=resource_class) != must_wait(new, resource_class=resource_class)
    )


def _left(old: Object | None, new: Object | None, resource_class: str) -> bool:
    """Class and finalizer were taken away in one go: what was applied still has to be removed."""
    return old is not None and new is not None and concerns(old, resource_class=resource_class)


def _became_unhealthy(old: Object, new: Object) -> bool:
    before, after = condition(old, HEALTHY), condition(new, HEALTHY)
    if after is None or after.get("status") != "False":
        return False
    return before is None or before.get("status") == "True"
