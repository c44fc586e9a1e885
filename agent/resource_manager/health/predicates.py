"""Eligibility of a ManagedResource for a check of health or progress, and the events that lead to a check."""

from enum import Enum, auto

from agent.resource_manager.health.pods import CountedPod
from agent.resource_manager.health.projections import NOTHING, ObjectHealth
from gardener import conditions
from gardener.responsibility import belongs_to_class, class_of, is_ignored, is_responsible
from kube.objects import Object, condition, is_deleting
from kube.runtime.predicates import Predicate, all_of, changed, now

SOON = 0.1
"""Seconds until a check, so that it covers simultaneous changes."""
LATER = 10.0
"""Seconds until a known problem is reported with another message: a roll-out of many pods changes it all the time."""


class Eligibility(Enum):
    CHECK = auto()
    CHECK_APPLIED = auto()
    """Some objects cannot be applied; only the others are checked."""
    WAIT = auto()
    """Not applied yet: until the event of that, only the regular check takes place."""
    STOP = auto()
    """Nothing to do until another event."""


def eligibility(managed_resource: Object, *, resource_class: str, while_failing: bool) -> Eligibility:
    """Return the eligibility.

    Args: while_failing: whether to check a ManagedResource while some of its objects cannot be applied.
    """
    if (
        is_ignored(managed_resource)
        or not is_responsible(managed_resource, resource_class=resource_class)
        or is_deleting(managed_resource)
    ):
        return Eligibility.STOP
    match applied_status(managed_resource):
        case None | "Progressing":
            return Eligibility.WAIT
        case "False":
            return Eligibility.CHECK_APPLIED if while_failing else Eligibility.WAIT
        case _:
            return Eligibility.CHECK


def applied_status(managed_resource: Object) -> str | None:
    """Return the status of the condition ResourcesApplied; None without that condition."""
    found = condition(managed_resource, conditions.RESOURCES_APPLIED)
    return None if found is None else found.get("status")


# --- events: the state before and after; `old` is None for a creation, `new` for a deletion


def calls_for_check(*, resource_class: str) -> Predicate[Object]:
    """Return a predicate: whether an event of a ManagedResource leads to a check of it."""

    def is_ours(managed_resource: Object) -> bool:
        return not is_ignored(managed_resource) and belongs_to_class(managed_resource, resource_class=resource_class)

    return all_of(now(is_ours), changed(class_of, applied_status, is_ignored))


def delay(old: ObjectHealth | None, new: ObjectHealth | None, *, counts_existence: bool) -> float | None:
    """Return seconds until a check after a change of a managed object; None if no check is necessary.

    `counts_existence`: whether the creation or deletion of an object without problems counts.
    """
    if counts_existence and (old is None) != (new is None):
        return SOON
    before, after = old or NOTHING, new or NOTHING
    if (before.finding is None) != (after.finding is None) or before.pods != after.pods:
        return SOON
    is_same = (before.finding, before.manual) == (after.finding, after.manual)
    return None if is_same else LATER


def pod_delay(kept: ObjectHealth, pod: CountedPod, *, counts: bool) -> float | None:
    """Return seconds until a check after a change of a pod of a workload; None if no check is necessary.

    `counts`: whether the pod starts or stops to count.
    """
    if kept.pods is None or not kept.pods.select(pod.labels):
        return None
    if kept.finding is None:
        return SOON if counts else None
    return LATER if pod.cause else None
