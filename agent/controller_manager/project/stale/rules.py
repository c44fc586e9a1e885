"""When a Project is stale, and what follows from it as time passes.

                 minimum lifetime        grace          expiration, from `since` on
    created or ------------------> stale ------> `auto` ---------------------------> deleted
    last activity                  `since`

What is used is not stale, whatever its age. The time of deletion, once written, never moves closer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from config.controller_manager.controllers import Project
from gardener import keys
from kube.clock import format_time, parse_time
from kube.objects import Object, annotations, is_truthy, metadata, text
from kube.paths import at

SINCE, AUTO_DELETE, LAST_ACTIVITY = "staleSinceTimestamp", "staleAutoDeleteTimestamp", "lastActivityTimestamp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    since: str = ""
    """As the status has it: RFC 3339, empty for none."""
    auto_delete: str = ""
    deletes: bool = False
    due: datetime | None = None
    """When it will be another one by the time alone."""

    def apply(self, status: Object) -> Object:
        return {**status, SINCE: self.since or None, AUTO_DELETE: self.auto_delete or None}


def protected_until(project: Object, settings: Project) -> datetime:
    """Until then it is not stale, whether it is used or not."""
    last = at(project, "status", LAST_ACTIVITY)
    moments = [parse_time(each) for each in (text(metadata(project).get("creationTimestamp")), text(last)) if each]
    return max(moments) + timedelta(days=settings.minimum_lifetime_days)


def is_exempt(namespace: Object) -> bool:
    return is_truthy(annotations(namespace).get(keys.SKIP_STALE_CHECK))


def decide(project: Object, settings: Project, *, is_kept: bool, now: datetime) -> Decision:
    """Args: is_kept: whether it is used, or exempt."""
    until = protected_until(project, settings)
    if until > now:
        return Decision(due=until)
    if is_kept:
        return Decision()
    since = text(at(project, "status", SINCE)) or format_time(now)
    grace_ends = parse_time(since) + timedelta(days=settings.stale_grace_period_days)
    if grace_ends > now:
        return Decision(since=since, due=grace_ends)
    expires = parse_time(since) + timedelta(days=settings.stale_expiration_time_days)
    stored = text(at(project, "status", AUTO_DELETE))
    auto_delete = stored if stored and parse_time(stored) >= expires else format_time(expires)
    ends = parse_time(auto_delete)
    return Decision(since=since, auto_delete=auto_delete, deletes=ends <= now, due=ends)
