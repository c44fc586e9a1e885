"""When a Seed is lost, and what is said about it and about its Shoots then.

A Seed without any condition has just been made: its gardenlet is still to come. As soon as anybody has said anything
about it (that its extensions are not installed, say), a Lease that is not renewed means that the gardenlet is missing,
also if it has never been there.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from gardener import conditions
from gardener.garden.shoots import workers
from kube.clock import parse_time
from kube.conditions import Condition, conditions_of, with_conditions
from kube.objects import Object, condition, mapping, spec, text
from kube.paths import at, mappings_at

LOST = Condition(conditions.GARDENLET_READY, "Unknown", "SeedStatusUnknown", "Gardenlet stopped posting seed status.")
_SHOOT_REASON, _SHOOT_MESSAGE = "StatusUnknown", "Gardenlet stopped sending heartbeats."


def moment(value: object) -> datetime | None:
    """None: it is missing, or no time."""
    try:
        return parse_time(text(value))
    except ValueError:
        return None


def renewal_of(lease: Object) -> datetime | None:
    """When a Lease was renewed last."""
    return moment(spec(lease).get("renewTime"))


def lapses(renewed: datetime | None, *, monitor_period: float) -> datetime | None:
    """When a Seed whose Lease was renewed then is lost; None: its Lease has never been renewed."""
    return None if renewed is None else renewed + timedelta(seconds=monitor_period)


def is_reported(seed: Object) -> bool:
    """Whether anybody has said anything about it."""
    return bool(conditions_of(seed))


def is_unknown(seed: Object) -> bool:
    found = condition(seed, conditions.GARDENLET_READY)
    return found is not None and found.get("status") == "Unknown"


def unknown_since(seed: Object) -> datetime | None:
    """None: it is not unknown."""
    if not is_unknown(seed):
        return None
    return moment((condition(seed, conditions.GARDENLET_READY) or {}).get("lastTransitionTime"))


def certificate_expires(seed: Object) -> datetime | None:
    return moment(at(seed, "status", "clientCertificateExpirationTimestamp"))


# --- Shoots


def seed_of(shoot: Object) -> str:
    return text(spec(shoot).get("seedName"))


def abandoned(shoot: Object, status: Object, *, now: datetime) -> Object:
    """The status of a Shoot of a lost Seed, equal to the present one if it says so already."""
    is_workerless = not workers(spec(shoot))
    kinds = [each for each in conditions.SHOOT_CONDITIONS if not is_workerless or each != conditions.EVERY_NODE_READY]
    constraints = (conditions.HIBERNATION_POSSIBLE, conditions.MAINTENANCE_PRECONDITIONS_SATISFIED)
    return {
        **status,
        "conditions": with_conditions(mappings_at(status, "conditions"), _unknown(kinds), now=now),
        "constraints": with_conditions(mappings_at(status, "constraints"), _unknown(constraints), now=now),
    }


def is_abandoned(shoot: Object, *, now: datetime) -> bool:
    """Whether its status says so already."""
    status = mapping(shoot.get("status"))
    return abandoned(shoot, status, now=now) == status


def _unknown(kinds: Iterable[str]) -> list[Condition]:
    return [Condition(kind, "Unknown", _SHOOT_REASON, _SHOOT_MESSAGE) for kind in kinds]
