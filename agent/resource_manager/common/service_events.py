"""Warnings about an object, such as a Service, as text for users.

    -> Events:
    * service-controller reported 12s ago (x4 over 3m5s): quota exceeded

Ages read as in `kubectl get`.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import structlog

from kube.clock import parse_time, short_duration
from kube.errors import KubeError
from kube.objects import Key, Object
from kube.resources import EVENTS
from kube.runtime.client import Client, Selection

HEADING = "-> Events:"
SHOWN = 5
"""Number of Events that are shown: the latest ones."""

_NEVER = datetime.min.replace(tzinfo=UTC)


def field_selector(namespace: str, name: str, *, api_version: str = "v1", kind: str = "Service") -> str:
    """Return a field selector for the warnings about an object in a list of Events."""
    return (
        f"involvedObject.apiVersion={api_version},involvedObject.kind={kind},involvedObject.name={name},"
        f"involvedObject.namespace={namespace},type=Warning"
    )


async def warnings_about(client: Client, name: Key, *, api_version: str = "v1", kind: str = "Service") -> str:
    """Return the warnings about an object, read now; empty if there are none or they cannot be read."""
    selector = field_selector(name.namespace, name.name, api_version=api_version, kind=kind)
    try:
        found: list[Object] = []  # thousands may exist; keep only those shown
        async for page in client.pages(EVENTS, Selection(namespace=name.namespace, field_selector=selector)):
            found = _latest([*found, *page])
        return events_text(found, now=datetime.now(UTC))
    except KubeError as error:
        log = structlog.get_logger()
        log.info("Cannot read the Events of an object", object=f"{kind} {name}", error=str(error))
        return ""


def events_text(events: Iterable[Object], *, now: datetime) -> str:
    """Return the latest events, the newest last; empty if there are none."""
    latest = _latest(events)
    return "\n".join((HEADING, *(_line(event, now) for event in latest))) if latest else ""


def _latest(events: Iterable[Object]) -> list[Object]:
    return sorted(events, key=lambda event: _time(event, "lastTimestamp") or _NEVER)[-SHOWN:]


def _line(event: Object, now: datetime) -> str:
    source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
    return f"* {source} reported {_when(event, now)}: {event.get('message') or ''}"


def _when(event: Object, now: datetime) -> str:
    first, last = _time(event, "firstTimestamp"), _time(event, "lastTimestamp")
    count = event.get("count") or 0
    if count > 1:
        return f"{_age(last, now)} ago (x{count} over {_age(first, now)})"
    return f"{_age(first or _time(event, 'eventTime'), now)} ago"


def _time(event: Object, field: str) -> datetime | None:
    text = event.get(field)
    return parse_time(text) if text else None


def _age(moment: datetime | None, now: datetime) -> str:
    return "<unknown>" if moment is None else short_duration((now - moment).total_seconds())
