"""Findings about programs of a garden that do not run: they no longer renew their Leases."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from gardener.garden.domains import NAMESPACE
from kube.clock import time_or_none
from kube.objects import Key, Object, spec
from kubectl.garden.why.finding import Finding, Level, when
from kubectl.garden.why.seed import LATE

LEASES = {
    name: Key(NAMESPACE, f"{name}-leader-election") for name in ("gardener-controller-manager", "gardener-scheduler")
}
"""Lease of each program of a garden."""


def findings(leases: Mapping[str, Object | None], now: datetime) -> Iterator[Finding]:
    """Args: leases: by program; None if it does not exist, or may not be read."""
    for name, lease in leases.items():
        renewed = time_or_none(spec(lease or {}).get("renewTime"))
        if renewed is None or now - renewed <= LATE:
            continue
        yield Finding(
            level=Level.PROBLEM,
            about="program",
            text=f"{name} does not run: it renewed its Lease {LEASES[name]} last at {when(renewed, now)}",
            remedy="start it; in a local garden, see the reason by: python -m devcluster status --name NAME",
            at=renewed,
        )
