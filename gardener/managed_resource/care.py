"""Health of a component from the conditions of its ManagedResource, as care of Seeds and Shoots has it."""

from dataclasses import dataclass
from datetime import datetime

from gardener.conditions import RESOURCES_APPLIED, RESOURCES_GOOD, RESOURCES_HEALTHY, RESOURCES_PROGRESSING
from gardener.managed_resource.conditions import APPLY_FAILED
from kube.clock import format_duration, time_or_none
from kube.objects import Object, condition, integer, key, metadata, text
from kube.paths import at


@dataclass(frozen=True, slots=True)
class Problem:
    reason: str
    message: str


def problem_of(managed_resource: Object, *, progressing_threshold: float | None, now: datetime) -> Problem | None:
    """The first problem, if there is one.

    Args:
        managed_resource: with its generation, and its status.
        progressing_threshold: seconds for which it may be progressing; None: not at all.
        now: time of the check.
    """
    applied, healthy, progressing = (condition(managed_resource, type_) for type_ in RESOURCES_GOOD)
    if is_outdated(managed_resource):
        if applied is not None and applied.get("status") == "False" and applied.get("reason") == APPLY_FAILED:
            return _reported(applied)
        return Problem(
            "OutdatedStatus",
            f"observed generation of managed resource '{key(managed_resource)}' outdated"
            f" ({_observed(managed_resource)}/{_generation(managed_resource)})",
        )
    for found in (applied, healthy):
        if found is not None and found.get("status") in {"False", "Unknown"}:
            return _reported(found)
    if progressing is not None and progressing.get("status") in {"True", "Unknown"}:
        problem = _progress(managed_resource, progressing, progressing_threshold, now)
        if problem is not None:
            return problem
    return _missing(managed_resource)


def is_outdated(managed_resource: Object) -> bool:
    """Whether its status is about another version of its spec."""
    return _observed(managed_resource) != _generation(managed_resource)


def _generation(managed_resource: Object) -> int:
    return integer(metadata(managed_resource).get("generation"))


def _observed(managed_resource: Object) -> int:
    return integer(at(managed_resource, "status", "observedGeneration"))


def _reported(found: Object) -> Problem:
    return Problem(text(found.get("reason")), text(found.get("message")))


def _progress(managed_resource: Object, found: Object, threshold: float | None, now: datetime) -> Problem | None:
    if threshold is None:
        return _reported(found)
    since = time_or_none(found.get("lastTransitionTime"))
    if since is not None and (now - since).total_seconds() < threshold:
        return None
    name = key(managed_resource).name
    return Problem(
        "ProgressingRolloutStuck", f"ManagedResource {name} is progressing for more than {format_duration(threshold)}"
    )


def _missing(managed_resource: Object) -> Problem | None:
    types = (RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING)
    missing = sorted(type_ for type_ in types if condition(managed_resource, type_) is None)
    if not missing:
        return None
    name = key(managed_resource).name
    return Problem(
        "MissingManagedResourceCondition",
        f"ManagedResource {name} is missing the following condition(s), [{' '.join(missing)}]",
    )
