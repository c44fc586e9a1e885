"""What the updates of all versions have in common: what of a cloud profile qualifies, and what came of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gardener.garden.profiles import is_expired
from gardener.garden.versions import Version, parse_version
from kube.objects import Object, text

NOT_IN_PROFILE = "Version does not exist in CloudProfile"
_PREVIEW, _DEPRECATED = "preview", "deprecated"


@dataclass(frozen=True, slots=True)
class Update:
    """Of one version; or why it could not be updated, though it has to be."""

    description: str
    reason: str
    """Why it is to be updated."""
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Need:
    """Why a version is to be updated."""

    reason: str
    is_forced: bool
    """Not only as it suits: the version must not be used any more."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A version of a cloud profile that may be updated to, unless it is expired."""

    version: Version
    name: str
    """As written."""
    is_expired: bool
    is_deprecated: bool


def offers(versions: Iterable[Object], current: str, *, now: datetime) -> list[Offer]:
    """What is higher than the current version and no preview; the highest first."""
    present = parse_version(current)
    found = ((parse_version(text(each.get("version"))), each) for each in versions)
    higher = [
        Offer(
            version=version,
            name=text(each.get("version")),
            is_expired=is_expired(each, now),
            is_deprecated=each.get("classification") == _DEPRECATED,
        )
        for version, each in found
        if version is not None and present is not None and version > present and each.get("classification") != _PREVIEW
    ]
    return sorted(higher, key=lambda each: each.version, reverse=True)


def by_choice(candidates: Iterable[Offer]) -> list[Offer]:
    """Those that have not expired, the best first: deprecated ones come last."""
    return sorted((each for each in candidates if not each.is_expired), key=lambda each: each.is_deprecated)


def by_force(candidates: Iterable[Offer]) -> list[Offer]:
    """All, the best first: expired ones come last."""
    return sorted(candidates, key=lambda each: each.is_expired)


def same_minor(candidates: Iterable[Offer], current: str) -> list[Offer]:
    present = parse_version(current)
    return [each for each in candidates if present is not None and each.version[:2] == present[:2]]


def entry(versions: Iterable[Object], version: str) -> Object | None:
    """Of the cloud profile, about this very version."""
    return next((each for each in versions if each.get("version") == version), None)
