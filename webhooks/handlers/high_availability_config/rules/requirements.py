"""What a namespace and an object require, by their annotations: which failures have to be survived.

For the failure tolerance, absent and empty are different things: in a namespace without it everything is spread over
zones, if there are several; in one where it is empty, no failure has to be survived.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gardener.keys import HIGH_AVAILABILITY_PREFIX
from kube.objects import is_truthy

FAILURE_TOLERANCE_TYPE = HIGH_AVAILABILITY_PREFIX + "failure-tolerance-type"
ZONES = HIGH_AVAILABILITY_PREFIX + "zones"
ZONE_PINNING = HIGH_AVAILABILITY_PREFIX + "zone-pinning"

TYPE = HIGH_AVAILABILITY_PREFIX + "type"
REPLICAS = HIGH_AVAILABILITY_PREFIX + "replicas"
HOST_SPREAD = HIGH_AVAILABILITY_PREFIX + "host-spread"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What holds for all of a namespace."""

    failure_tolerance: str | None = None
    """`node`, `zone`, empty for none, None where nothing is said."""
    zones: tuple[str, ...] = ()
    zone_pinning: bool = False


def of_namespace(annotations: Mapping[str, str]) -> Requirements:
    zones = {zone.strip() for zone in annotations.get(ZONES, "").split(",")} - {""}
    return Requirements(
        failure_tolerance=annotations.get(FAILURE_TOLERANCE_TYPE),
        zones=tuple(sorted(zones)),
        zone_pinning=is_truthy(annotations.get(ZONE_PINNING)),
    )
