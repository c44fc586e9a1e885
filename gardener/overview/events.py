"""Events as people read them: when something was last seen, and how often."""

from collections.abc import Iterable

from kube.objects import Object

_NEVER = "0000"


def last_seen(event: Object) -> str:
    """As Kubernetes writes times; empty: never."""
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    found: str = last or event.get("eventTime") or event.get("firstTimestamp") or ""
    return found


def count(event: Object) -> int:
    """How often it was seen."""
    return (event.get("series") or {}).get("count") or event.get("count") or 1


def in_order(events: Iterable[Object]) -> list[Object]:
    """The newest at the end."""
    return sorted(events, key=lambda event: last_seen(event) or _NEVER)
