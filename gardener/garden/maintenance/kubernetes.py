"""The version of Kubernetes that follows the one of a control plane, or of a pool of workers."""

from collections.abc import Sequence
from datetime import datetime

from gardener.garden.maintenance.updates import (
    NOT_IN_PROFILE,
    Need,
    NoVersion,
    Offer,
    Update,
    by_choice,
    by_force,
    entry,
    offers,
    same_minor,
)
from gardener.garden.profiles import is_expired
from gardener.garden.versions import Version, parse_version
from kube.objects import Object

_EXPIRED = "Kubernetes version expired - force update required"
_AUTOMATIC = "Automatic update of Kubernetes version configured"


def need(version: str, versions: Sequence[Object], *, auto: bool, now: datetime) -> Need | None:
    """Args: auto: whether the user wants updates to higher patch versions anyway."""
    found = entry(versions, version)
    if found is None:
        return Need(NOT_IN_PROFILE, is_forced=True)
    if is_expired(found, now):
        return Need(_EXPIRED, is_forced=True)
    return Need(_AUTOMATIC, is_forced=False) if auto else None


def following(version: str, versions: Sequence[Object], *, is_forced: bool, now: datetime) -> str | None:
    """The highest patch version; if there is none and there must be one, the highest one of the next minor version.

    Raises: NoVersion.
    """
    candidates = offers(versions, version, now=now)
    found = by_choice(same_minor(candidates, version))
    if found is not None or not is_forced:
        return None if found is None else found.name
    forced = by_force(_next_minor(candidates, parse_version(version)))
    if forced is None:
        raise NoVersion(
            f'could not determine higher suitable version than "{version}": cannot perform forceful update of expired '
            f'version "{version}". No suitable version found in CloudProfile - this is most likely a misconfiguration '
            "of the CloudProfile"
        )
    return forced.name


def _next_minor(candidates: Sequence[Offer], current: Version | None) -> list[Offer]:
    if current is None:
        return []
    return [each for each in candidates if each.version[:2] == (current.major, current.minor + 1)]


def update(
    version: str, versions: Sequence[Object], *, auto: bool, now: datetime, most: str | None = None
) -> tuple[str, Update | None]:
    """The version that is to be, and what is said of it; None: it stays as it is.

    Args: most: not higher than this.
    """
    needed = need(version, versions, auto=auto, now=now)
    if needed is None:
        return version, None
    try:
        target = following(version, versions, is_forced=needed.is_forced, now=now)
    except NoVersion as error:
        return version, Update(f"{error}", needed.reason, succeeded=False)
    target = _capped(target, most)
    if target is None or not _is_higher(target, version):
        return version, None
    return target, Update(f'Updated Kubernetes version from "{version}" to "{target}"', needed.reason)


def _capped(target: str | None, most: str | None) -> str | None:
    return most if target is not None and most is not None and _is_higher(target, most) else target


def _is_higher(version: str, than: str) -> bool:
    one, other = parse_version(version), parse_version(than)
    return one is not None and other is not None and one > other
