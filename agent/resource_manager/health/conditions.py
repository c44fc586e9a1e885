"""Map the findings about all objects of a ManagedResource to its condition.

Only the first finding is reported: programs parse reason and message, and the original reports no more.

A status write wakes up every client that watches, so it only happens for something new. The events of a Service are
reported with their age, and the message of a failing container varies all the time, so each check would find something
new; as long as only these differ, the condition is left alone for a while.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent.resource_manager.common.service_events import HEADING
from gardener import conditions
from gardener.health.checks.rule import CAUSE
from gardener.health.findings import Finding
from gardener.managed_resource.conditions import with_manual_steps
from kube.clock import parse_time
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Object, condition

EVENTS_KEPT_FOR = timedelta(minutes=5)
"""Time that a stored message stays if only its events or its cause have changed."""

_THAT_ARE_APPLIED = " that could be applied"


def health_condition(findings: Sequence[Finding], *, only_applied: bool = False) -> Condition:
    if findings:
        return Condition(conditions.RESOURCES_HEALTHY, "False", findings[0].reason, findings[0].message)
    text = f"All resources{_THAT_ARE_APPLIED if only_applied else ''} are healthy."
    return Condition(conditions.RESOURCES_HEALTHY, "True", "ResourcesHealthy", text)


def progress_condition(
    findings: Sequence[Finding], manual: Sequence[str] = (), *, only_applied: bool = False
) -> Condition:
    """Return the condition.

    Args: manual: manual steps, object by object.
    """
    if findings:
        return Condition(conditions.RESOURCES_PROGRESSING, "True", findings[0].reason, findings[0].message)
    text = f"All resources{_THAT_ARE_APPLIED if only_applied else ''} have been fully rolled out."
    text = with_manual_steps(text, manual)
    return Condition(conditions.RESOURCES_PROGRESSING, "False", "ResourcesRolledOut", text)


def conditions_to_write(managed_resource: Object, wanted: Condition, *, now: datetime) -> list[Object] | None:
    """Return the new `status.conditions`; None if the stored ones are equal but for recent events."""
    stored = conditions_of(managed_resource)
    old = condition(managed_resource, wanted.type)
    if old is not None and _differs_only_in_recent_events(old, wanted, now):
        return None
    new = with_conditions(stored, [wanted], now=now)
    return None if new == stored else new


def _differs_only_in_recent_events(old: Object, wanted: Condition, now: datetime) -> bool:
    if (old.get("status"), old.get("reason")) != (wanted.status, wanted.reason):
        return False
    old_text, new_text = old.get("message") or "", wanted.message
    for separator in (HEADING, CAUSE):
        if separator in old_text and separator in new_text:
            break
    else:
        return False
    if old_text.partition(separator)[0] != new_text.partition(separator)[0] or not old.get("lastUpdateTime"):
        return False
    return now - parse_time(old["lastUpdateTime"]) < EVENTS_KEPT_FOR
