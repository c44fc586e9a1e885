"""Findings about a deletion, from the seed: objects in a Shoot's namespace that are going, and what each waits for."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from gardener.api.druid import ETCDS
from gardener.api.extensions import ALL_EXTENSIONS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.flow_reports import Awaited
from kube.clock import time_or_none
from kube.objects import Object, held_by, key, metadata
from kube.resources import DEPLOYMENTS, SECRETS, SERVICES, Resource
from kubectl.garden.why import flow
from kubectl.garden.why.finding import Finding, Level, when

KINDS = (
    MANAGED_RESOURCES,
    *(each for each in ALL_EXTENSIONS if each.namespaced),
    ETCDS,
    DEPLOYMENTS,
    SERVICES,
    SECRETS,
)
"""Kinds of objects that may hold the namespace."""
_MOST = 20

Held = tuple[Resource, Object]


def findings(held: Iterable[Held], now: datetime) -> Iterator[Finding]:
    """Findings about these objects; those that have waited the longest come first."""
    ordered = sorted(held, key=lambda each: str(metadata(each[1]).get("deletionTimestamp")))
    for resource, obj in ordered[:_MOST]:
        name, begun = key(obj), time_or_none(metadata(obj).get("deletionTimestamp"))
        since = "" if begun is None else f", deleted at {when(begun, now)},"
        reason = held_by({**obj, **resource.type_meta})
        yield Finding(
            level=Level.BLOCKED,
            about="deletion",
            text=f"in the seed, {resource.kind} {name}{since} {reason}",
            remedy=flow.remedy(Awaited(kind=resource.kind, key=name, since=0.0, reason=reason)),
            at=begun,
        )
    if (more := len(ordered) - _MOST) > 0:
        yield Finding(level=Level.BLOCKED, about="deletion", text=f"... and {more} more objects in the seed")
