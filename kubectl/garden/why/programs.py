"""Findings about programs of a garden that do not run: they no longer renew their Leases."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from gardener.api.garden import SEEDS, SHOOTS
from gardener.garden.domains import NAMESPACE
from gardener.garden.scheduling import waits
from kube.clock import time_or_none
from kube.objects import Key, Object, is_deleting, spec
from kube.resources import Resource
from kubectl.garden.why.finding import Finding, Level, when
from kubectl.garden.why.other import OF_GARDENLETS
from kubectl.garden.why.seed import LATE

LEASES = {
    name: Key(NAMESPACE, f"{name}-leader-election") for name in ("gardener-controller-manager", "gardener-scheduler")
}
"""Lease of each program of a garden."""


def needed_by(resource: Resource, obj: Object) -> str:
    """Program that an object waits for; empty if for none of them."""
    if resource == SHOOTS:
        return "gardener-scheduler" if waits(obj) else ""
    return "gardener-controller-manager" if is_deleting(obj) and resource not in {SEEDS, *OF_GARDENLETS} else ""


def findings(leases: Mapping[str, Object | None], now: datetime, *, needed: str) -> Iterator[Finding]:
    """Args:
    leases: by program; None if it does not exist, or may not be read.
    needed: program that the object waits for.
    """
    for name, lease in leases.items():
        renewed = time_or_none(spec(lease or {}).get("renewTime"))
        if renewed is None or now - renewed <= LATE:
            continue
        yield Finding(
            level=Level.BLOCKED if name == needed else Level.PROBLEM,
            about="program",
            text=f"{name} does not run: it renewed its Lease {LEASES[name]} last at {when(renewed, now)}",
            remedy="start it; in a local garden, see the reason by: python -m devcluster status --name NAME",
            at=renewed,
        )
