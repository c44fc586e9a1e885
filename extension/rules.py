"""The contract of an extension, for one object: which operation is due, whether it may start, when it was answered."""

from datetime import datetime

from gardener import keys, operations
from gardener.extension_contract import last_operation
from gardener.garden.shoots import has_failed
from kube.clock import time_or_none
from kube.objects import Object, annotations, finalizers, is_deleting, is_truthy, mapping, spec, text
from kube.paths import at

SHOOT_CLASS = "shoot"
"""Class of an object that names none; others belong to a seed or a garden."""


def operation_on(obj: Object) -> str:
    """Operation that has to be done; empty if there is none."""
    requested, last = annotations(obj).get(keys.OPERATION, ""), last_operation(obj)
    kind, has_succeeded = text(last.get("type")), last.get("state") == operations.SUCCEEDED
    if requested == keys.OPERATION_MIGRATE:
        return operations.MIGRATE
    if is_deleting(obj):  # a migrating object is not destroyed
        return operations.MIGRATE if kind == operations.MIGRATE else operations.DELETE
    if requested == keys.OPERATION_WAIT_FOR_STATE:
        return ""
    if requested == keys.OPERATION_RESTORE:
        return operations.RESTORE
    if not requested and has_succeeded:
        return ""
    if not last:
        return operations.CREATE
    is_other = kind == operations.DELETE or (kind == operations.MIGRATE and requested == keys.OPERATION_RECONCILE)
    return operations.RECONCILE if has_succeeded or is_other else kind


def is_to_be_left_alone(cluster: Object) -> bool:
    """Whether the Shoot of a Cluster has failed with its current spec, or has to be ignored."""
    shoot = mapping(at(cluster, "spec", "shoot"))
    return has_failed(shoot) or is_truthy(annotations(shoot).get(keys.SHOOT_IGNORE))


def class_of(obj: Object) -> str:
    return text(spec(obj).get("class")) or SHOOT_CLASS


def has_health(obj: Object, finalizer: str) -> bool:
    """Whether an object has something to check: it was created or restored, and neither leaves nor has left."""
    last = last_operation(obj)
    kind, has_succeeded = last.get("type"), last.get("state") == operations.SUCCEEDED
    is_coming = kind in {operations.CREATE, operations.RESTORE} and not has_succeeded
    is_leaving = is_deleting(obj) or kind in {operations.DELETE, operations.MIGRATE}
    return bool(last) and finalizer in finalizers(obj) and not is_coming and not is_leaving


def answer_time(obj: Object, now: datetime) -> datetime:
    """Time of an answer: not before the request, even if the clocks of the two sides differ."""
    requested = time_or_none(annotations(obj).get(keys.TIMESTAMP))
    return now if requested is None else max(now, requested)
