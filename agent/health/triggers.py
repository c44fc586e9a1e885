"""Which events lead to a check, and of which ManagedResource.

An event is given as the state before and after; `old` is None for a creation, `new` for a deletion.
"""

from agent.health.gate import applied_status
from agent.health.judged import NOTHING, Judged
from agent.responsibility import class_of, concerns, is_ignored
from kube.objects import Object

SOON = 0.1
"""Seconds: what changes together is looked at together."""
LATER = 10.0
"""Seconds until other words for a known problem are told: a roll-out of many pods finds new ones all the time."""


def managed_resource_matters(old: Object | None, new: Object | None, *, resource_class: str) -> bool:
    """Whether an event of a ManagedResource leads to a check of it."""
    if new is None or is_ignored(new) or not concerns(new, resource_class=resource_class):
        return False
    return (
        old is None or class_of(old) != class_of(new) or applied_status(old) != applied_status(new) or is_ignored(old)
    )


def delay(old: Judged | None, new: Judged | None, *, existence_matters: bool) -> float | None:
    """In how many seconds a check is due since a managed object changed; None if its ManagedResource looks the same.

    `existence_matters` tells whether it is news that a fine object came or went.
    """
    if existence_matters and (old is None) != (new is None):
        return SOON
    before, after = old or NOTHING, new or NOTHING
    if (before.finding is None) != (after.finding is None) or before.pods != after.pods:
        return SOON
    return None if before.finding == after.finding else LATER
