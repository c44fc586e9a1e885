"""Health of a seed's components: one function from its ManagedResources to the condition of the Seed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from gardener.conditions import IN_PROGRESS, SEED_SYSTEM_COMPONENTS_HEALTHY, failed
from gardener.managed_resource.care import is_outdated, problem_of
from kube.conditions import Condition
from kube.objects import Object, condition, key, mapping

POLICIES_MISSING = "NetworkPoliciesMissing"
NOT_REPORTED = "ManagedResourceNotReported"
SHOWN = 10
"""Maximum number of listed namespaces with missing policies."""


def found_in(
    managed_resources: Iterable[Object],
    *,
    missing_policies: Mapping[str, Sequence[str]],
    is_answered: Callable[[Object], bool],
    now: datetime,
) -> Condition:
    """Result of the check: `False` for the first problem, sorted by namespace and name.

    It is `Progressing` if there is no problem, but a status is older than the last write.

    Args:
        managed_resources: the relevant ones.
        missing_policies: names of missing policies by namespace, where another program creates them.
        is_answered: whether the status of a ManagedResource belongs to its last write.
        now: of the check.
    """
    waiting = None
    for managed_resource in sorted(managed_resources, key=key):
        problem = problem_of(managed_resource, progressing_threshold=None, now=now)
        if not is_outdated(managed_resource) and not is_answered(managed_resource):
            waiting = waiting or key(managed_resource)
        elif problem is not None:
            return _condition("False", problem.reason, problem.message)
    if missing_policies:
        return _condition("False", POLICIES_MISSING, _missing(missing_policies))
    if waiting is not None:
        message = f"ManagedResource {waiting} was changed, but its status is outdated"
        return _condition(IN_PROGRESS, NOT_REPORTED, message)
    return _condition("True", "SystemComponentsRunning", "All system components are healthy.")


def wanted(seed: Object, found: Condition, *, threshold: float | None, now: datetime) -> Condition | None:
    """Condition to write; None if it stays unchanged."""
    old = condition(seed, found.type)
    if found.status == "False":
        operation = mapping(mapping(seed.get("status")).get("lastOperation"))
        return failed(old, found, threshold=threshold, last_operation=operation, now=now)
    # The problem may still exist.
    is_wrong = old is not None and old.get("status") == "False"
    return None if found.status == IN_PROGRESS and is_wrong else found


def _condition(status: str, reason: str, message: str) -> Condition:
    return Condition(SEED_SYSTEM_COMPONENTS_HEALTHY, status, reason, message)


def _missing(policies: Mapping[str, Sequence[str]]) -> str:
    named = [f"{namespace} ({', '.join(policies[namespace])})" for namespace in sorted(policies)[:SHOWN]]
    more = f", and in {len(policies) - SHOWN} more" if len(policies) > SHOWN else ""
    return (
        f"NetworkPolicies are missing in namespaces {', '.join(named)}{more}; start the program that creates them, or "
        "remove the namespaces from namespacesServedElsewhere"
    )
