"""Types of conditions, and texts in them that several programs use."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from kube.clock import format_time, parse_time, time_or_none
from kube.conditions import Condition
from kube.objects import Object, mapping, mappings, text

# --- of ManagedResources
RESOURCES_APPLIED = "ResourcesApplied"
RESOURCES_HEALTHY = "ResourcesHealthy"
RESOURCES_PROGRESSING = "ResourcesProgressing"
RESOURCES_GOOD = {RESOURCES_APPLIED: "True", RESOURCES_HEALTHY: "True", RESOURCES_PROGRESSING: "False"}
"""Statuses of a healthy ManagedResource."""
READY = "Ready"
"""Summary of the others, if the configuration enables it."""

IN_PROGRESS = "Progressing"
"""Status of a condition, in addition to True, False and Unknown."""

# --- of Seeds
GARDENLET_READY = "GardenletReady"
BACKUP_BUCKETS_READY = "BackupBucketsReady"
EXTENSIONS_READY = "ExtensionsReady"
SEED_SYSTEM_COMPONENTS_HEALTHY = "SeedSystemComponentsHealthy"
GARDENLET_CERTIFICATE = "GardenletCertificate"
"""Whether the certificate of the gardenlet is renewed in time. An extension of ours."""

# --- of ManagedSeeds
SEED_REGISTERED = "SeedRegistered"
SHOOT_RECONCILED = "ShootReconciled"

# --- of Gardenlets
GARDENLET_RECONCILED = "GardenletReconciled"

# --- of Shoots
API_SERVER_AVAILABLE = "APIServerAvailable"
CONTROL_PLANE_HEALTHY = "ControlPlaneHealthy"
OBSERVABILITY_COMPONENTS_HEALTHY = "ObservabilityComponentsHealthy"
EVERY_NODE_READY = "EveryNodeReady"
SYSTEM_COMPONENTS_HEALTHY = "SystemComponentsHealthy"
SHOOT_CONDITIONS = (
    API_SERVER_AVAILABLE,
    CONTROL_PLANE_HEALTHY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    EVERY_NODE_READY,
    SYSTEM_COMPONENTS_HEALTHY,
)
"""Conditions that the gardenlet writes; workerless Shoots have all but `EVERY_NODE_READY`."""
HIBERNATION_POSSIBLE = "HibernationPossible"
"""A constraint, as the next ones are."""
MAINTENANCE_PRECONDITIONS_SATISFIED = "MaintenancePreconditionsSatisfied"
CA_CERTIFICATE_VALIDITIES_ACCEPTABLE = "CACertificateValiditiesAcceptable"
CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS = "CRDsWithProblematicConversionWebhooks"
OLD_CA_CERTIFICATE_UNUSED = "OldCACertificateUnused"
"""Present while clients have to exchange an old CA. An extension of ours."""
OPTIONAL_CONSTRAINTS = (CA_CERTIFICATE_VALIDITIES_ACCEPTABLE, CRDS_WITH_PROBLEMATIC_CONVERSION_WEBHOOKS)
"""Constraints that are shown only if they are not True, except for hibernated Shoots."""

# --- of ControllerInstallations
VALID = "Valid"
INSTALLED = "Installed"
HEALTHY = "Healthy"
PROGRESSING = "Progressing"
REQUIRED = "Required"


def constraint(shoot: Mapping[str, Any], type_: str) -> Object | None:
    """Constraint of a Shoot, a reason against an operation on it; None if there is none of the type."""
    listed = mappings(mapping(shoot.get("status")).get("constraints"))
    return next((each for each in listed if each.get("type") == type_), None)


# --- conditions of the gardenlet


def not_checked(type_: str, error: str) -> Condition:
    """Condition of a check that could not be carried out. Neither a threshold nor a pardon applies."""
    return Condition(type_, "Unknown", "ConditionCheckError", error)


def failed(
    old: Mapping[str, Any] | None,
    found: Condition,
    *,
    threshold: float | None,
    last_operation: Mapping[str, Any] | None,
    now: datetime,
) -> Condition:
    """The condition to write for a check that fails now.

    With a threshold it is progressing for so long, counted from the change of its status: a message that changes every
    minute does not prolong that. The same applies after an operation that has just succeeded, and when the check fails
    for another reason.

    Args:
        old: the present condition, None if there is none.
        found: result of the check; its status is ignored.
        threshold: seconds; None: no threshold.
        last_operation: of the object.
        now: of the check.
    """
    status = "False"
    if threshold is not None and old is not None:
        since = time_or_none(old.get("lastTransitionTime"))
        match old.get("status"):
            case "True":
                status = IN_PROGRESS
            case "Progressing":
                is_young = since is not None and now <= since + timedelta(seconds=threshold)
                if is_young or _has_just_succeeded(last_operation, threshold, now):
                    status = IN_PROGRESS
            case "False":
                if old.get("reason") != found.reason or _has_just_succeeded(last_operation, threshold, now):
                    status = IN_PROGRESS
    return replace(found, status=status)


def _has_just_succeeded(operation: Mapping[str, Any] | None, threshold: float, now: datetime) -> bool:
    if operation is None or operation.get("state") != "Succeeded":
        return False
    ended = time_or_none(operation.get("lastUpdateTime"))
    return ended is not None and now <= ended + timedelta(seconds=threshold)


def to_be_checked(listed: Iterable[Object], types: Collection[str], *, now: datetime) -> list[Object]:
    """Conditions of an object on which an operation has just succeeded.

    Those of these types are progressing until they are checked again, since they predate the operation. False ones
    stay.
    """
    moment = format_time(now)
    hint = {"status": IN_PROGRESS, "lastTransitionTime": moment, "lastUpdateTime": moment}
    return [
        {**each, **hint} if each.get("type") in types and each.get("status") not in {"False", IN_PROGRESS} else each
        for each in listed
    ]


def pardoned(found: Condition, status: Mapping[str, Any]) -> Condition:
    """The condition; a failure is progressing while a Shoot is created, deleted, or processed without errors so far.

    Args: status: of the Shoot.
    """
    operation = mapping(status.get("lastOperation"))
    is_coming_or_going = operation.get("type") in {"Create", "Delete"} and operation.get("state") != "Succeeded"
    is_worked_on = operation.get("state") == "Processing" and not mappings(status.get("lastErrors"))
    if found.status == "False" and (not operation or is_coming_or_going or is_worked_on):
        return replace(found, status=IN_PROGRESS)
    return found


# --- conditions of the controller manager


def softened(status: str, old: Mapping[str, Any] | None, *, threshold: float, now: datetime) -> str:
    """The status to write for `False` or `Unknown`: a condition that was true is progressing for a while first.

    `threshold` is the maximum of seconds for that, `old` the present condition, or None if there is none.
    """
    if old is None or threshold <= 0:
        return status
    if old.get("status") == "True":
        return IN_PROGRESS
    remaining = progressing_until(old, threshold=threshold)
    return IN_PROGRESS if remaining is not None and now <= remaining else status


def progressing_until(condition: Mapping[str, Any], *, threshold: float) -> datetime | None:
    """End of the threshold of a condition that is progressing; None if it is not progressing."""
    if condition.get("status") != IN_PROGRESS:
        return None
    try:
        return parse_time(text(condition.get("lastTransitionTime"))) + timedelta(seconds=threshold)
    except ValueError:
        return None
