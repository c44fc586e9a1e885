"""From the findings about all objects of a ManagedResource to its condition.

Only the first finding is told: programs parse reason and message, and the original tells no more.

A status write wakes up everybody who watches, so it is done only for something new. The events of a Service are
told with their age, which would make each check something new; as long as only they differ, the condition is left
alone for a while.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.conditions import with_condition
from agent.health import keys
from agent.health.findings import Finding
from agent.service_events import HEADING
from kube.objects import Object, condition, parse_time

EVENTS_KEPT_FOR = timedelta(minutes=5)
"""How long a stored message stays if only its events have changed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    type: str
    status: str
    reason: str
    message: str


def health_verdict(findings: Sequence[Finding]) -> Verdict:
    if findings:
        return Verdict(keys.RESOURCES_HEALTHY, "False", findings[0].reason, findings[0].message)
    return Verdict(keys.RESOURCES_HEALTHY, "True", "ResourcesHealthy", "All resources are healthy.")


def progress_verdict(findings: Sequence[Finding]) -> Verdict:
    if findings:
        return Verdict(keys.RESOURCES_PROGRESSING, "True", findings[0].reason, findings[0].message)
    return Verdict(
        keys.RESOURCES_PROGRESSING,
        "False",
        "ResourcesRolledOut",
        "All resources have been fully rolled out.",
    )


def conditions_to_write(managed_resource: Object, verdict: Verdict, *, now: datetime) -> list[Object] | None:
    """The new `status.conditions`, or None if the stored ones tell the verdict already."""
    stored: list[Object] = (managed_resource.get("status") or {}).get("conditions") or []
    old = condition(managed_resource, verdict.type)
    if old is not None and _differs_only_in_recent_events(old, verdict, now):
        return None
    conditions = with_condition(
        stored,
        verdict.type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message,
        now=now,
    )
    return None if conditions == stored else conditions


def _differs_only_in_recent_events(old: Object, verdict: Verdict, now: datetime) -> bool:
    if (old.get("status"), old.get("reason")) != (verdict.status, verdict.reason):
        return False
    told, separator, _ = (old.get("message") or "").partition(HEADING)
    to_tell, new_separator, _ = verdict.message.partition(HEADING)
    if not (separator and new_separator and told == to_tell and old.get("lastUpdateTime")):
        return False
    return now - parse_time(old["lastUpdateTime"]) < EVENTS_KEPT_FOR
