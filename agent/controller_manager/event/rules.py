"""Which Events are deleted, and by which of their times they are as old as they are."""

from datetime import datetime

from gardener.api.garden import CORE_GROUP, SHOOTS
from kube.clock import time_or_none
from kube.objects import Object, group_of, mapping, metadata, text
from kube.paths import at


def last_seen(event: Object) -> datetime | None:
    """What is kept of an Event: when it was told last; None for those of Shoots, which are left alone.

    Events of the newer API have no `lastTimestamp`, and say in `series` when they were repeated.
    """
    involved = mapping(event.get("involvedObject"))
    if involved.get("kind") == SHOOTS.kind and group_of(text(involved.get("apiVersion"))) == CORE_GROUP:
        return None
    times = (at(event, "series", "lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return time_or_none(next(filter(None, times), metadata(event).get("creationTimestamp")))
