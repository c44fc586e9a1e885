"""The conditions that this controller writes: types, status, reason and message, and their order.

The order counts once: types that an object doesn't have yet are appended as they come.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from gardener.conditions import IN_PROGRESS, READY, RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.messages import apply_error_of, apply_error_text, decoding_message
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Object, condition, metadata

CANNOT_READ = "CannotReadSecret"
CHECKS_PENDING = "ChecksPending"
APPLY_PROGRESSING = "ApplyProgressing"
APPLY_SUCCEEDED = "ApplySucceeded"
APPLY_FAILED = "ApplyFailed"
DECODING_FAILED = "DecodingFailed"
DELETION_FAILED = "DeletionFailed"
DELETION_PENDING = "DeletionPending"
IGNORED = "ManagedResourceIgnored"
INVALID_DEPENDENCIES = "InvalidDependencies"
WAITING_FOR_DEPENDENCIES = "WaitingForDependencies"
RELEASE_FAILED = "ReleaseOfOrphanedResourcesFailed"
RESOURCES_READY = "ResourcesReady"

_BEING_DELETED = "The resources are currently being deleted."
_APPLIED_WITH_WARNINGS = "All resources are applied, with warnings: "
_WITH_WARNINGS = "; applied with warnings: "
_IS_IGNORED = "ManagedResource is marked to be ignored."
_READING_REFUSED = re.compile(r'" cannot (?:get|list|watch) resource "')
_MANUAL = " Do manually: "
_MANUAL_SHOWN = 5


def ignored() -> list[Condition]:
    return [
        Condition(RESOURCES_APPLIED, "True", IGNORED, _IS_IGNORED),
        Condition(RESOURCES_HEALTHY, "True", IGNORED, _IS_IGNORED),
        Condition(RESOURCES_PROGRESSING, "False", IGNORED, _IS_IGNORED),
    ]


def reset(present: Sequence[Object]) -> list[Condition]:
    """Conditions before a change in the target. The last failure stays visible until it is repaired."""
    return [
        *unchecked(),
        _in_progress(
            present,
            keep=(APPLY_FAILED, DELETION_FAILED, DELETION_PENDING),
            otherwise=(APPLY_PROGRESSING, "The resources are currently being reconciled."),
        ),
    ]


def unchecked() -> list[Condition]:
    """Conditions after a change of the applied objects, until they are checked again."""
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
    ]


def is_retried(present: Sequence[Object]) -> bool:
    """Whether the last pass failed, and the next ones try the same again."""
    found = _applied(present)
    return found.get("status") == "False" and found.get("reason") in {APPLY_FAILED, DELETION_FAILED, RELEASE_FAILED}


def is_held_up(managed_resource: Object) -> bool:
    """Whether its last pass applied nothing, and the next one will not either by itself."""
    found = condition(managed_resource, RESOURCES_APPLIED) or {}
    return found.get("reason") in {WAITING_FOR_DEPENDENCIES, INVALID_DEPENDENCIES, CANNOT_READ}


def has_failed(managed_resource: Object, resource: str) -> bool:
    """Whether its last pass could not apply the object of this resource string, also for lack of rights."""
    found = condition(managed_resource, RESOURCES_APPLIED) or {}
    return found.get("reason") == APPLY_FAILED and apply_error_text(resource, "") in (found.get("message") or "")


def has_not_been_read(managed_resource: Object, resource: str) -> bool:
    """Whether its last pass could not apply the object of this resource string since it may not be read."""
    found = condition(managed_resource, RESOURCES_APPLIED) or {}
    if found.get("reason") != APPLY_FAILED:
        return False
    return bool(_READING_REFUSED.search(apply_error_of(found.get("message") or "", resource)))


def being_removed() -> list[Condition]:
    """Conditions while the ManagedResource is deleted or handed to another class, even if its objects stay."""
    return [
        Condition(RESOURCES_HEALTHY, "False", DELETION_PENDING, _BEING_DELETED),
        Condition(RESOURCES_PROGRESSING, "True", DELETION_PENDING, _BEING_DELETED),
    ]


def deleting(present: Sequence[Object]) -> Condition:
    """Condition before all objects are removed; known obstacles stay visible."""
    found = _applied(present)
    kept = found.get("reason") in {DELETION_PENDING, DELETION_FAILED}
    return Condition(
        RESOURCES_APPLIED, IN_PROGRESS, DELETION_PENDING, (found.get("message") or "") if kept else _BEING_DELETED
    )


def deletion_pending(message: str) -> Condition:
    return Condition(RESOURCES_APPLIED, IN_PROGRESS, DELETION_PENDING, message)


def waiting(message: str) -> Condition:
    """Condition while it waits for other ManagedResources, before anything is applied or removed."""
    return Condition(RESOURCES_APPLIED, IN_PROGRESS, WAITING_FOR_DEPENDENCIES, message)


def failed(reason: str, message: str, *, warnings: str = "") -> Condition:
    """Condition of a failure. Args: warnings: about objects that were applied nevertheless."""
    if warnings:
        message = f"{message}{_WITH_WARNINGS}{warnings}"
    return Condition(RESOURCES_APPLIED, "False", reason, message)


def applied(decode_errors: Sequence[str] = (), *, warnings: str = "") -> Condition:
    """Condition at the end of a pass in which nothing failed, except possibly the decoding of some documents."""
    if decode_errors:
        return failed(DECODING_FAILED, decoding_message(decode_errors), warnings=warnings)
    message = f"{_APPLIED_WITH_WARNINGS}{warnings}" if warnings else "All resources are applied."
    return Condition(RESOURCES_APPLIED, "True", APPLY_SUCCEEDED, message)


def warnings_in(applied: Object) -> str:
    """Warnings in a condition made by `applied` or `failed`."""
    message: str = applied.get("message") or ""
    if applied.get("status") == "False":
        return message.partition(_WITH_WARNINGS)[2]
    is_so = applied.get("status") == "True" and message.startswith(_APPLIED_WITH_WARNINGS)
    return message.removeprefix(_APPLIED_WITH_WARNINGS) if is_so else ""


def ready(managed_resource: Object) -> Condition | None:
    """Summary of its other conditions; None while there are none.

    True: applied, healthy and rolled out. Otherwise reason and message of the first condition that is not good: False
    if it reports a failure, Unknown if it is in progress.
    """
    applied = condition(managed_resource, RESOURCES_APPLIED)
    if applied is None:
        return None
    for kind, good in ((RESOURCES_APPLIED, "True"), (RESOURCES_HEALTHY, "True"), (RESOURCES_PROGRESSING, "False")):
        found = condition(managed_resource, kind) or {}
        if found.get("status") != good:
            status = "False" if found.get("status") == "False" else "Unknown"
            return Condition(READY, status, found.get("reason") or CHECKS_PENDING, found.get("message") or "")
    if applied.get("reason") == IGNORED:
        return Condition(READY, "True", IGNORED, _IS_IGNORED)
    if not is_observed(managed_resource):
        return Condition(READY, "Unknown", APPLY_PROGRESSING, "The last change of the spec is not applied yet.")
    message = "All resources are applied, healthy and rolled out."
    steps = manual_steps_of(managed_resource)
    return Condition(READY, "True", RESOURCES_READY, f"{message}{_MANUAL}{steps}" if steps else message)


def with_manual_steps(message: str, steps: Sequence[str]) -> str:
    """The message of a complete roll-out, with its manual steps."""
    if not steps:
        return message
    shown = list(steps[:_MANUAL_SHOWN])
    if more := len(steps) - len(shown):
        shown.append(f"{more} more")
    return f"{message}{_MANUAL}{'; '.join(shown)}"


def manual_steps_of(managed_resource: Object) -> str:
    """Manual steps that its roll-out requires, from the condition; empty if there are none."""
    found = condition(managed_resource, RESOURCES_PROGRESSING) or {}
    return (found.get("message") or "").partition(_MANUAL)[2] if found.get("status") == "False" else ""


def with_ready(managed_resource: Object, *, is_wanted: bool, now: datetime) -> Object:
    """Its status with the condition `Ready`, or without it if it is not wanted, so that no old one stays."""
    status, present = managed_resource.get("status") or {}, conditions_of(managed_resource)
    if not is_wanted:
        kept = [each for each in present if each.get("type") != READY]
        return status if len(kept) == len(present) else {**status, "conditions": kept}
    found = ready(managed_resource)
    return status if found is None else {**status, "conditions": with_conditions(present, [found], now=now)}


def is_observed(managed_resource: Object) -> bool:
    """Whether the conditions are about the present spec."""
    observed: int = (managed_resource.get("status") or {}).get("observedGeneration") or 0
    return observed >= (metadata(managed_resource).get("generation") or 0)


def needs_reset(
    *, old_references: Sequence[Object], new_references: Sequence[Object], old_checksum: str, new_checksum: str
) -> bool:
    """Whether the described objects differ from the end of the last pass; order counts."""
    return list(old_references) != list(new_references) or old_checksum != new_checksum


def _in_progress(present: Sequence[Object], *, keep: Sequence[str], otherwise: tuple[str, str]) -> Condition:
    found = _applied(present)
    reason, message = otherwise
    if found.get("reason") in keep:
        reason, message = found["reason"], found.get("message") or ""
    return Condition(RESOURCES_APPLIED, IN_PROGRESS, reason, message)


def _applied(present: Sequence[Object]) -> Object:
    return next((condition for condition in present if condition.get("type") == RESOURCES_APPLIED), {})
