"""A Deployment is healthy when it is available; it is rolled out when only its new pods are left.

Health does not compare replica counts: a rolling update would make each Deployment unhealthy for a while, and
that is what progress is for.

The Deployment's own status does not count pods that are on their way out. They may still hold a lock or serve with
the old configuration, so the pods are counted as well (see `gardener.health.checks.workload_pods`).

A paused one that is available stays as it is until a person resumes it, so it is healthy and rolled out. One that was
paused before it had any pods is neither.
"""

from gardener.health.checks.rule import (
    CAUSE,
    Condition,
    Rule,
    condition,
    desired_replicas,
    field,
    integer,
    missing_condition,
    optional_integer,
    outdated,
    partly_updated,
    required_condition,
    wrong_status,
)
from kube.objects import Object

NO_DEADLINE = 2**31 - 1
"""The value of `progressDeadlineSeconds` with which a Deployment gets no condition `Progressing`."""


def health(deployment: Object) -> str | None:
    failure = condition(deployment, "ReplicaFailure")
    if unavailable := outdated(deployment) or required_condition(deployment, "Available", "True"):
        is_known = failure is not None and failure.status == "True" and failure.message
        return f"{unavailable}{CAUSE}{failure.message}" if failure is not None and is_known else unavailable
    progressing = condition(deployment, "Progressing")
    for found, expected in ((progressing, "True"), (failure, "False")):
        if found is not None and not _is_of_pause(deployment, found) and (wrong := wrong_status(found, expected)):
            return wrong
    return None


def _is_of_pause(deployment: Object, found: Condition) -> bool:
    return found.reason == "DeploymentPaused" and is_paused(deployment)


def is_paused(deployment: Object) -> bool:
    """Whether it is available, and its roll-out is left to a person."""
    available = condition(deployment, "Available")
    return field(deployment, "spec.paused") is True and available is not None and available.status == "True"


def progress(deployment: Object) -> str | None:
    """Progress by its own status; its pods are checked as well."""
    if old := outdated(deployment):
        return old
    if is_paused(deployment):
        return None
    progressing = condition(deployment, "Progressing")
    if progressing is None:
        if optional_integer(deployment, "spec.progressDeadlineSeconds") == NO_DEADLINE:
            return _progress_by_replicas(deployment)
        return missing_condition("Progressing")
    if progressing.status != "True" or progressing.reason != "NewReplicaSetAvailable":
        return progressing.message
    return None


def manual(deployment: Object) -> str | None:
    not_updated = _not_updated(deployment)
    if not_updated is None or not is_paused(deployment):
        return None
    return f"{not_updated}, since spec.paused is true: set it to false to update the others"


def _not_updated(deployment: Object) -> str | None:
    return partly_updated(integer(deployment, "status.updatedReplicas"), desired_replicas(deployment))


def _progress_by_replicas(deployment: Object) -> str | None:
    desired = desired_replicas(deployment)
    replicas = integer(deployment, "status.replicas")
    available = integer(deployment, "status.availableReplicas")
    if not_updated := _not_updated(deployment):
        return not_updated
    if replicas > desired:
        return f"there are more replicas than desired ({replicas}/{desired})"
    return f"{available} of {desired} replica(s) are available" if available < desired else None


RULE = Rule(group="apps", kind="Deployment", health=health, progress=progress, manual=manual)
