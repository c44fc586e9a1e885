"""Conditions in the status of a ManagedResource.

Several controllers write conditions of one object, each its own. A condition keeps its place in the list, its
`lastTransitionTime` tells when the status changed and its `lastUpdateTime` when reason or message changed, so
two computations with the same result give equal lists and nothing has to be written.
"""

from collections.abc import Sequence
from datetime import datetime

from kube.objects import Object, format_time


def with_condition(
    conditions: Sequence[Object],
    condition_type: str,
    *,
    status: str,
    reason: str,
    message: str,
    now: datetime,
) -> list[Object]:
    """The conditions with the given one put in the place of its predecessor, or at the end if it is new."""
    position = next((i for i, c in enumerate(conditions) if c.get("type") == condition_type), len(conditions))
    old = conditions[position] if position < len(conditions) else {}
    said = {"reason": reason or "Unspecified", "message": message or "No message given."}
    kept_status = old.get("status") == status
    kept_words = all(old.get(name) == value for name, value in said.items()) and not old.get("codes")
    moment = format_time(now)
    new = {
        "type": condition_type,
        "status": status,
        "lastTransitionTime": old.get("lastTransitionTime") or moment if kept_status else moment,
        "lastUpdateTime": old.get("lastUpdateTime") or moment if kept_words else moment,
        **said,
    }
    return [*conditions[:position], new, *conditions[position + 1 :]]
