"""Operations on an object that has `status.lastOperation`: their type, and their progress.

The record of an earlier attempt decides the operation of the next one: creation, migration and restoration continue
until they have succeeded.
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
WAITS_FOR_SEED = "Shoot cannot be synced with Seed"
"""Start of the description of an operation that begins when the Seed is ready."""
_UNFINISHED = (CREATE, MIGRATE, RESTORE)


def operation_of(obj: Object) -> str:
    """Type of its operation; `shoots.operation_of` also considers the Seeds of a Shoot."""
    requested = annotations(obj).get(keys.OPERATION)
    if requested == keys.OPERATION_MIGRATE:
        return MIGRATE
    if is_deleting(obj):
        return DELETE
    if requested == keys.OPERATION_RESTORE:
        return RESTORE
    last = mapping(mapping(obj.get("status")).get("lastOperation"))
    if not last:
        return CREATE
    kind = text(last.get("type"))
    return kind if kind in _UNFINISHED and last.get("state") != SUCCEEDED else RECONCILE


def operation(kind: str, state: str, progress: int, description: str, *, now: datetime) -> Object:
    """Value of `lastOperation`."""
    reported = {"type": kind, "state": state, "progress": progress, "description": description}
    return {**reported, "lastUpdateTime": format_time(now)}


PROGRAM_ENDED = "its process has ended and is started again"
"""Start of the reason of an object that is not ready, before the last error of its program."""


def following(before: Object, wanted: Object) -> Object:
    """The wanted `lastOperation`; the previous one, with its time, if nothing else differs."""
    is_same = all(before.get(name) == wanted.get(name) for name in wanted if name != "lastUpdateTime")
    return before if is_same else wanted


def generation(obj: Object) -> int:
    return integer(metadata(obj).get("generation"))


def is_repeated(obj: Object) -> bool:
    """Whether the last operation succeeded with the present spec, so that the next one repeats it."""
    status = mapping(obj.get("status"))
    succeeded = mapping(status.get("lastOperation")).get("state") == SUCCEEDED
    return succeeded and status.get("observedGeneration") == generation(obj)
