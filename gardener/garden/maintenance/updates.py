"""Common types of the updates of all versions: candidates of a cloud profile, and results."""

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
    """Update of one version; or the reason why a required update is impossible."""

    description: str
    reason: str
    """Reason for the update."""
    succeeded: bool = True


@dataclass(frozen=True, slots=True)
class Need:
    """Reason for an update."""

    reason: str
    is_forced: bool
    """Whether the version must be replaced; otherwise the update is optional."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Candidate version of a cloud profile, unless it is expired."""

    version: Version
    name: str
    """Name of the version as written."""
    is_expired: bool
    is_deprecated: bool


def offers(versions: Iterable[Object], current: str, *, now: datetime) -> list[Offer]:
    """Versions that are higher than the current one and no previews; the highest first."""
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
    """Candidates that have not expired, the best first: deprecated ones come last."""
    return sorted((each for each in candidates if not each.is_expired), key=lambda each: each.is_deprecated)


def by_force(candidates: Iterable[Offer]) -> list[Offer]:
    """All candidates, the best first: expired ones come last."""
    return sorted(candidates, key=lambda each: each.is_expired)


def same_minor(candidates: Iterable[Offer], current: str) -> list[Offer]:
    present = parse_version(current)
    return [each for each in candidates if present is not None and each.version[:2] == present[:2]]


def entry(versions: Iterable[Object], version: str) -> Object | None:
    """Entry of a version in the cloud profile; None if it is not listed."""
    return next((each for each in versions if each.get("version") == version), None)
