"""The conditions that this controller writes: which type, status, reason and message, and in which order.

The order matters once: types that an object doesn't have yet are appended as they come.
"""

from collections.abc import Sequence

from gardener.conditions import IN_PROGRESS, RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.messages import decoding_message
from kube.conditions import Condition
from kube.objects import Object

CANNOT_READ = "CannotReadSecret"
CHECKS_PENDING = "ChecksPending"
APPLY_PROGRESSING = "ApplyProgressing"
APPLY_SUCCEEDED = "ApplySucceeded"
APPLY_FAILED = "ApplyFailed"
DECODING_FAILED = "DecodingFailed"
DELETION_FAILED = "DeletionFailed"
DELETION_PENDING = "DeletionPending"
IGNORED = "ManagedResourceIgnored"
RELEASE_FAILED = "ReleaseOfOrphanedResourcesFailed"

_BEING_DELETED = "The resources are currently being deleted."
_IS_IGNORED = "ManagedResource is marked to be ignored."


def ignored() -> list[Condition]:
    return [
        Condition(RESOURCES_APPLIED, "True", IGNORED, _IS_IGNORED),
        Condition(RESOURCES_HEALTHY, "True", IGNORED, _IS_IGNORED),
        Condition(RESOURCES_PROGRESSING, "False", IGNORED, _IS_IGNORED),
    ]


def reset(present: Sequence[Object]) -> list[Condition]:
    """Before something changes in the target. What went wrong last time stays to be read until it is put right."""
    return [
        Condition(
            RESOURCES_HEALTHY,
            "Unknown",
            CHECKS_PENDING,
            "The health checks have not yet been executed for the current set of resources.",
        ),
        Condition(
            RESOURCES_PROGRESSING,
            "Unknown",
            CHECKS_PENDING,
            "Checks have not yet been executed for the current set of resources.",
        ),
        _in_progress(
            present,
            keep=(APPLY_FAILED, DELETION_FAILED, DELETION_PENDING),
            otherwise=(APPLY_PROGRESSING, "The resources are currently being reconciled."),
        ),
    ]


def being_removed() -> list[Condition]:
    """The ManagedResource is being deleted, or another class takes over; whatever becomes of its objects."""
    return [
        Condition(RESOURCES_HEALTHY, "False", DELETION_PENDING, _BEING_DELETED),
        Condition(RESOURCES_PROGRESSING, "True", DELETION_PENDING, _BEING_DELETED),
    ]


def deleting(present: Sequence[Object]) -> Condition:
    """All objects are about to be removed; what is known to hold them stays to be read."""
    found = _applied(present)
    kept = found.get("reason") in {DELETION_PENDING, DELETION_FAILED}
    return Condition(
        RESOURCES_APPLIED, IN_PROGRESS, DELETION_PENDING, (found.get("message") or "") if kept else _BEING_DELETED
    )


def deletion_pending(message: str) -> Condition:
    return Condition(RESOURCES_APPLIED, IN_PROGRESS, DELETION_PENDING, message)


def failed(reason: str, message: str) -> Condition:
    return Condition(RESOURCES_APPLIED, "False", reason, message)


def applied(decode_errors: Sequence[str] = ()) -> Condition:
    """At the end of a pass in which nothing failed but perhaps the decoding of some documents."""
    if decode_errors:
        return failed(DECODING_FAILED, decoding_message(decode_errors))
    return Condition(RESOURCES_APPLIED, "True", APPLY_SUCCEEDED, "All resources are applied.")


def needs_reset(
    *, old_references: Sequence[Object], new_references: Sequence[Object], old_checksum: str, new_checksum: str
) -> bool:
    """Whether the ManagedResource describes something else than at the end of the last pass; order counts."""
    return list(old_references) != list(new_references) or old_checksum != new_checksum


def _in_progress(present: Sequence[Object], *, keep: Sequence[str], otherwise: tuple[str, str]) -> Condition:
    found = _applied(present)
    reason, message = otherwise
    if found.get("reason") in keep:
        reason, message = found["reason"], found.get("message") or ""
    return Condition(RESOURCES_APPLIED, IN_PROGRESS, reason, message)


def _applied(present: Sequence[Object]) -> Object:
    return next((condition for condition in present if condition.get("type") == RESOURCES_APPLIED), {})
