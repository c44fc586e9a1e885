"""A DaemonSet is healthy when its pods are where they belong and available.

While it is rolled out, as many pods may be unavailable as its update strategy allows. With the strategy `OnDelete` a
pod is only updated when a person deletes it, so old pods keep no roll-out from being complete.
"""

import re

from gardener.health.checks.rule import Rule, field, integer, outdated, partly_updated, string
from kube.objects import Object

_PERCENTAGE = re.compile(r"([+-]?[0-9]+)%")


def health(daemon_set: Object) -> str | None:
    return outdated(daemon_set) or _misplaced(daemon_set) or _unavailable(daemon_set)


def _misplaced(daemon_set: Object) -> str | None:
    misscheduled = integer(daemon_set, "status.numberMisscheduled")
    if missing := _missing(daemon_set):
        return missing
    return f"misscheduled pods found ({misscheduled})" if misscheduled > 0 else None


def _missing(daemon_set: Object) -> str | None:
    current = integer(daemon_set, "status.currentNumberScheduled")
    desired = integer(daemon_set, "status.desiredNumberScheduled")
    return f"not enough scheduled pods ({current}/{desired})" if current < desired else None


def _unavailable(daemon_set: Object) -> str | None:
    current = integer(daemon_set, "status.currentNumberScheduled")
    unavailable = integer(daemon_set, "status.numberUnavailable")
    if _not_updated(daemon_set):
        allowed = _max_unavailable(daemon_set)
        if unavailable > allowed:
            return (
                f"too many unavailable pods found ({unavailable}/{current},"
                f" only max. {allowed} unavailable pods allowed)"
            )
        return None
    return f"too many unavailable pods found ({unavailable}/{current})" if unavailable > 0 else None


def _max_unavailable(daemon_set: Object) -> int:
    if string(daemon_set, "spec.updateStrategy.type") != "RollingUpdate":
        return 0
    desired = integer(daemon_set, "status.desiredNumberScheduled")
    allowed = field(daemon_set, "spec.updateStrategy.rollingUpdate.maxUnavailable")
    if desired == 0:
        return 0
    if isinstance(allowed, int):
        return allowed
    percentage = _PERCENTAGE.fullmatch(allowed) if isinstance(allowed, str) else None
    return desired * int(percentage[1]) // 100 if percentage else 0


def _not_updated(daemon_set: Object) -> str | None:
    return partly_updated(
        integer(daemon_set, "status.updatedNumberScheduled"), integer(daemon_set, "status.desiredNumberScheduled")
    )


def progress(daemon_set: Object) -> str | None:
    if _is_updated_on_delete(daemon_set):
        return outdated(daemon_set) or _missing(daemon_set)
    return outdated(daemon_set) or _not_updated(daemon_set)


def manual(daemon_set: Object) -> str | None:
    not_updated = _not_updated(daemon_set)
    if not_updated is None or not _is_updated_on_delete(daemon_set):
        return None
    return f"{not_updated}, since spec.updateStrategy.type is OnDelete: delete the other pods to update them"


def _is_updated_on_delete(daemon_set: Object) -> bool:
    return string(daemon_set, "spec.updateStrategy.type") == "OnDelete"


RULE = Rule(group="apps", kind="DaemonSet", health=health, progress=progress, manual=manual)
