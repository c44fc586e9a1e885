"""Operations on an object that has `status.lastOperation`: which one it is, and how its progress is written.

What an earlier attempt wrote says with which operation to go on: one that makes an object, or takes it over, is that
until it has succeeded.
"""

from datetime import datetime

from gardener import keys
from kube.clock import format_time
from kube.objects import Object, annotations, integer, is_deleting, mapping, metadata, text

CREATE, RECONCILE, DELETE, MIGRATE, RESTORE = "Create", "Reconcile", "Delete", "Migrate", "Restore"
PROCESSING, SUCCEEDED, ERROR, FAILED, PENDING, ABORTED = (
    *("Processing", "Succeeded", "Error", "Failed"),
    *("Pending", "Aborted"),
)
_UNFINISHED = (CREATE, MIGRATE, RESTORE)


def operation_of(obj: Object) -> str:
    """Its type; for Shoots, what Seeds it is on counts besides."""
    asked = annotations(obj).get(keys.OPERATION)
    if asked == keys.OPERATION_MIGRATE:
        return MIGRATE
    if is_deleting(obj):
        return DELETE
    if asked == keys.OPERATION_RESTORE:
        return RESTORE
    last = mapping(mapping(obj.get("status")).get("lastOperation"))
    if not last:
        return CREATE
    kind = text(last.get("type"))
    return kind if kind in _UNFINISHED and last.get("state") != SUCCEEDED else RECONCILE


def operation(kind: str, state: str, progress: int, description: str, *, now: datetime) -> Object:
    """What is written as `lastOperation`."""
    said = {"type": kind, "state": state, "progress": progress, "description": description}
    return {**said, "lastUpdateTime": format_time(now)}


def following(before: Object, wanted: Object) -> Object:
    """The wanted `lastOperation`; the one of before, with its time, if nothing in it is new."""
    is_same = all(before.get(name) == wanted.get(name) for name in wanted if name != "lastUpdateTime")
    return before if is_same else wanted


def generation(obj: Object) -> int:
    return integer(metadata(obj).get("generation"))
