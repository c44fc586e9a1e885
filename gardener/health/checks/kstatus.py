"""Health of other kinds, by the conventions that kstatus, and with it Flux and kpt, apply to any status.

An object is current, in progress or failed. An object in progress is healthy but progressing, a failed one is
unhealthy. The first of these decides:

    it is being deleted, or `observedGeneration` is not its generation   in progress
    condition `Reconciling` is True                                      in progress
    condition `Stalled` is True                                          failed
    condition `Ready`, or without it `Available`                         current if True, failed if False,
                                                                         in progress if Unknown
    neither, but `Degraded` or `Failed` is True                          failed

An object without any of these is current, and so is one whose status has another shape. To kstatus, `Ready=False` is
in progress until a caller stops waiting. Here no caller waits, so it is a failure, unless `Reconciling` is True.

Source: https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus
"""

from collections.abc import Callable
from dataclasses import dataclass

from gardener.health.checks.rule import (
    Condition,
    Malformed,
    Rule,
    condition,
    optional_integer,
    outdated_generation,
    quoted,
    wrong_status,
)
from kube.objects import Object, is_deleting


@dataclass(frozen=True, slots=True)
class NotCurrent:
    """Reason of the wait, or of the failure, of an object."""

    message: str
    is_failure: bool = False


Assess = Callable[[Object], NotCurrent | None]
"""None: the object is current."""


def assessed(group: str, kind: str, assess: Assess) -> Rule:
    """The rule for all versions of a kind."""

    def health(obj: Object) -> str | None:
        found = assess(obj)
        return found.message if found is not None and found.is_failure else None

    def progress(obj: Object) -> str | None:
        found = assess(obj)
        return found.message if found is not None and not found.is_failure else None

    return Rule(group=group, kind=kind, versions=(), health=health, progress=progress)


def not_yet_observed(obj: Object) -> NotCurrent | None:
    """Reason why no part of the status is about the present spec.

    Raises:
        Malformed: a field has a wrong type.
    """
    if is_deleting(obj):
        return NotCurrent("it is being deleted")
    observed = optional_integer(obj, "status.observedGeneration")
    old = outdated_generation(obj, observed) if observed is not None else None
    return NotCurrent(old) if old else None


def by_conditions(obj: Object) -> NotCurrent | None:
    try:
        return (
            not_yet_observed(obj)
            or _expected_false(obj, "Reconciling", is_failure=False)
            or _expected_false(obj, "Stalled")
            or _by_readiness(obj)
        )
    except Malformed:
        return None


def _by_readiness(obj: Object) -> NotCurrent | None:
    found = condition(obj, "Ready") or condition(obj, "Available")
    if found is None:
        return _expected_false(obj, "Degraded") or _expected_false(obj, "Failed")
    if _is_outdated(obj, found):
        return NotCurrent(f"condition {quoted(found.type)} is about generation {found.observed_generation}")
    wrong = wrong_status(found, "True")
    return None if wrong is None else NotCurrent(wrong, is_failure=found.status == "False")


def _expected_false(obj: Object, condition_type: str, *, is_failure: bool = True) -> NotCurrent | None:
    found = condition(obj, condition_type)
    if found is None or found.status != "True":
        return None
    return NotCurrent(wrong_status(found, "False") or "", is_failure=is_failure)


def _is_outdated(obj: Object, found: Condition) -> bool:
    """Whether the condition is outdated, by its optional field `observedGeneration`."""
    return bool(found.observed_generation) and outdated_generation(obj, found.observed_generation) is not None


_OF_KUBERNETES = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "networking",
        "node",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)


def is_custom(group: str) -> bool:
    """Whether it is not a group of Kubernetes itself, whose kinds have other rules or need none, and whose Secrets must
    not be read for this.
    """
    return "." in group and group not in _OF_KUBERNETES
