"""The versions of Kubernetes that may follow that of a control plane, or of a worker pool."""

from collections.abc import Sequence
from datetime import datetime

from gardener.garden.maintenance.updates import (
    NOT_IN_PROFILE,
    Need,
    Offer,
    Update,
    by_choice,
    by_force,
    entry,
    offers,
    same_minor,
)
from gardener.garden.profiles import is_expired
from gardener.garden.versions import Version, is_too_far_behind, parse_version
from kube.objects import Object

_EXPIRED = "Kubernetes version expired - force update required"
_AUTOMATIC = "Automatic update of Kubernetes version configured"


def need(version: str, versions: Sequence[Object], *, auto: bool, now: datetime) -> Need | None:
    """Reason for an update. Args: auto: whether the user enabled updates to higher patch versions."""
    found = entry(versions, version)
    if found is None:
        return Need(NOT_IN_PROFILE, is_forced=True)
    if is_expired(found, now):
        return Need(_EXPIRED, is_forced=True)
    return Need(_AUTOMATIC, is_forced=False) if auto else None


def tiers(version: str, versions: Sequence[Object], *, is_forced: bool, now: datetime) -> list[list[Offer]]:
    """Higher patch versions; and, if the update is forced, versions of the next minor version. The best first."""
    candidates = offers(versions, version, now=now)
    found = [by_choice(same_minor(candidates, version))]
    if is_forced:
        found.append(by_force(_next_minor(candidates, parse_version(version))))
    return [tier for tier in found if tier]


def within_skew(
    version: str, versions: Sequence[Object], control_plane: Version, *, now: datetime
) -> list[list[Offer]]:
    """The minor versions for a pool that is too far behind, the lowest first; expired ones come last.

    Pools, unlike control planes, may skip minor versions.
    """
    allowed = [
        each
        for each in offers(versions, version, now=now)
        if each.version <= control_plane and not is_too_far_behind(each.version, control_plane)
    ]
    minors = sorted({each.version[:2] for each in allowed})
    usable = [by_choice(each for each in allowed if each.version[:2] == minor) for minor in minors]
    expired = [[each for each in allowed if each.is_expired and each.version[:2] == minor] for minor in minors]
    return [tier for tier in (*usable, *expired) if tier]


def _next_minor(candidates: Sequence[Offer], current: Version | None) -> list[Offer]:
    if current is None:
        return []
    return [each for each in candidates if each.version[:2] == (current.major, current.minor + 1)]


def updated(version: str, target: str, reason: str) -> Update:
    return Update(f'Updated Kubernetes version from "{version}" to "{target}"', reason)


def none_follows(version: str, reason: str) -> Update:
    return Update(
        f'could not determine higher suitable version than "{version}": cannot perform forceful update of expired '
        f'version "{version}". No suitable version found in CloudProfile - this is most likely a misconfiguration '
        "of the CloudProfile",
        reason,
        succeeded=False,
    )
