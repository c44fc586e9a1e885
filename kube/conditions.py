"""Conditions in the status of an object.

Several controllers write conditions of one object, each its own. A condition keeps its place in the list, its
`lastTransitionTime` is when the status changed and its `lastUpdateTime` when reason, message or codes changed, so
two computations with the same result give equal lists and nothing has to be written.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.clock import format_time
from kube.objects import Object


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition reported by a controller; an empty reason or message is filled in.

    Args: codes: for APIs whose conditions have error codes.
    """

    type: str
    status: str
    reason: str
    message: str
    codes: tuple[str, ...] = ()


def conditions_of(obj: Mapping[str, Any]) -> list[Object]:
    return (obj.get("status") or {}).get("conditions") or []


def with_conditions(present: Sequence[Object], wanted: Iterable[Condition], *, now: datetime) -> list[Object]:
    """Replace each wanted condition in place, or append it if it is new.

    Equal to the present conditions if nothing changes.
    """
    result = list(present)
    for each in wanted:
        position = next((i for i, c in enumerate(result) if c.get("type") == each.type), len(result))
        old = result[position] if position < len(result) else {}
        result[position : position + 1] = [_following(old, each, now=now)]
    return result


def _following(old: Mapping[str, Any], wanted: Condition, *, now: datetime) -> Object:
    reported: Object = {"reason": wanted.reason or "Unspecified", "message": wanted.message or "No message given."}
    if wanted.codes:
        reported["codes"] = list(wanted.codes)
    kept_status = old.get("status") == wanted.status
    kept_words = all((old.get(name) or None) == reported.get(name) for name in ("reason", "message", "codes"))
    moment = format_time(now)
    return {
        "type": wanted.type,
        "status": wanted.status,
        "lastTransitionTime": old.get("lastTransitionTime") or moment if kept_status else moment,
        "lastUpdateTime": old.get("lastUpdateTime") or moment if kept_words else moment,
        **reported,
    }
