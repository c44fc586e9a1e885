"""Whether a ManagedResource is to be checked now, and which events lead to a check, of health or progress."""

from enum import Enum, auto

from agent.resource_manager.health.pods import CountedPod
from agent.resource_manager.health.projections import NOTHING, ObjectHealth
from gardener import conditions
from gardener.responsibility import belongs_to_class, class_of, is_ignored, is_responsible
from kube.objects import Object, condition, is_deleting
from kube.runtime.predicates import Predicate, all_of, changed, now

SOON = 0.1
"""Seconds: what changes together is looked at together."""
LATER = 10.0
"""Seconds until other words for a known problem are written: a roll-out of many pods finds new ones all the time."""


class Eligibility(Enum):
    CHECK = auto()
    CHECK_APPLIED = auto()
    """Some objects can't be applied; the others are looked at."""
    WAIT = auto()
    """Not applied yet: until an event says that it is, nothing but the regular look takes place."""
    STOP = auto()
    """Nothing to do here until an event brings it back."""


def eligibility(managed_resource: Object, *, resource_class: str, while_failing: bool) -> Eligibility:
    """Args: while_failing: whether those are checked of which some objects can't be applied."""
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
    """The status of the condition that everything was applied; None without that condition."""
    found = condition(managed_resource, conditions.RESOURCES_APPLIED)
    return None if found is None else found.get("status")


# --- events: the state before and after; `old` is None for a creation, `new` for a deletion


def calls_for_check(*, resource_class: str) -> Predicate[Object]:
    """Whether an event of a ManagedResource leads to a check of it."""

    def is_ours(managed_resource: Object) -> bool:
        return not is_ignored(managed_resource) and belongs_to_class(managed_resource, resource_class=resource_class)

    return all_of(now(is_ours), changed(class_of, applied_status, is_ignored))


def delay(old: ObjectHealth | None, new: ObjectHealth | None, *, counts_existence: bool) -> float | None:
    """In how many seconds a check is due since a managed object changed; None if its ManagedResource looks the same.

    `counts_existence`: whether it counts that a fine object came or went.
    """
    if counts_existence and (old is None) != (new is None):
        return SOON
    before, after = old or NOTHING, new or NOTHING
    if (before.finding is None) != (after.finding is None) or before.pods != after.pods:
        return SOON
    is_same = (before.finding, before.manual) == (after.finding, after.manual)
    return None if is_same else LATER


def pod_delay(kept: ObjectHealth, pod: CountedPod, *, counts: bool) -> float | None:
    """In how many seconds a check is due since a pod of a workload changed; None if it looks the same.

    `counts`: whether the pod is counted from now on, or no more.
    """
    if kept.pods is None or not kept.pods.select(pod.labels):
        return None
    if kept.finding is None:
        return SOON if counts else None
    return LATER if pod.cause else None
