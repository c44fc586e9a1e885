"""Events for people: last occurrence, and count."""

from collections.abc import Iterable

from kube.objects import Object

_NEVER = "0000"


def last_seen(event: Object) -> str:
    """Time of the last occurrence, in the format of Kubernetes; empty if there is none."""
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    found: str = last or event.get("eventTime") or event.get("firstTimestamp") or ""
    return found


def count(event: Object) -> int:
    """Number of occurrences."""
    return (event.get("series") or {}).get("count") or event.get("count") or 1


def in_order(events: Iterable[Object]) -> list[Object]:
    """Events by time, the newest at the end."""
    return sorted(events, key=lambda event: last_seen(event) or _NEVER)
