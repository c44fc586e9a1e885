"""Conditions of running objects, as controllers of Kubernetes and operators write them."""

from kube.objects import Object
from kube.objects import condition as found_condition

GOOD = "its process is ready"


def condition(
    obj: Object, of_type: str, *, is_true: bool, reported: str, now: str, reason: str = "", good: str = GOOD
) -> Object:
    """Return the condition; it keeps the previous time if it has the previous status.

    Args:
        obj: object of the condition.
        of_type: type of the condition.
        is_true: its status.
        reported: message while it is not true.
        now: RFC 3339.
        reason: empty to derive it from the status.
        good: message while it is true.
    """
    status = "True" if is_true else "False"
    before = found_condition(obj, of_type) or {}
    moment = before.get("lastTransitionTime") if before.get("status") == status else now
    message = good if is_true else reported
    return {
        "type": of_type,
        "status": status,
        "reason": reason or ("Running" if is_true else "NotReady"),
        "message": message,
        "lastTransitionTime": moment or now,
        "lastUpdateTime": before.get("lastUpdateTime") if before.get("message") == message else now,
    }
