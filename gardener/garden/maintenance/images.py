"""The next version of a machine image, by the update strategy of the image in the cloud profile.

All strategies prefer a higher patch version of the same minor version. If there is none:

    strategy   updates are wanted                         the version must be replaced
    patch      no update                                  the next existing minor version
    minor      the highest of the same major version      the next existing major version
    major      the highest                                the update fails
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from gardener.garden.machine_images import obstacles, suits
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
from gardener.garden.versions import Version, parse_version
from kube.objects import Object, mapping, mappings, text

PATCH, MINOR, MAJOR = "patch", "minor", "major"
_NO_OTHER_IMAGE = (
    'either the machine image "{image}" is reaching end of life and migration to another machine image is required or '
    "there is a misconfiguration in the CloudProfile. If it is the latter, make sure the machine image in the "
    "CloudProfile has at least one version that is not expired, not in preview and greater or equal to the current "
    'Shoot image version "{version}"'
)
_MOST_NAMED = 5


class Kubelet(NamedTuple):
    """Versions of the kubelet of a pool."""

    before: Version | None
    after: Version | None
    is_forced: bool = False
    """Whether the version before must be replaced."""


class Choice(NamedTuple):
    """The image version chosen for a pool."""

    version: str
    update: Update | None = None
    """None: no update."""
    obstacle: str = ""
    """Reason why the pool can't have the new version of kubelet: a predicate about the image."""

    @property
    def has_failed(self) -> bool:
        return self.update is not None and not self.update.succeeded


class _NoVersion(Exception):
    """No version follows one that must be replaced; the message has details."""


def choose(worker: Object, images: Sequence[Object], *, kubelet: Kubelet, auto: bool, now: datetime) -> Choice:
    """The version that suits the pool when it has the new version of kubelet.

    Args:
        worker: the pool.
        images: of the cloud profile.
        kubelet: its present and its new version in the pool.
        auto: whether the user enabled automatic updates.
        now: decides which versions have expired.
    """
    wanted = mapping(mapping(worker.get("machine")).get("image"))
    name, version = text(wanted.get("name")), text(wanted.get("version"))
    if not name:
        return Choice(version)
    image = next((each for each in images if each.get("name") == name), None)
    if image is None:
        why = f'failed to update machine image "{name}": machine image "{name}" is not in the CloudProfile'
        return Choice(version, Update(why, NOT_IN_PROFILE, succeeded=False))
    found = entry(mappings(image.get("versions")), version)
    if found is not None and suits(found, worker, kubelet.before) and not suits(found, worker, kubelet.after):
        return _for_kubelet(found, image, worker, kubelet=kubelet, auto=auto, now=now)
    needed = need(found, worker, strategy=strategy_of(image), kubelet=kubelet.after, auto=auto, now=now)
    if needed is None:
        return Choice(version)
    try:
        target = following(version, image, worker, kubelet=kubelet.after, is_forced=needed.is_forced, now=now)
    except _NoVersion as error:
        why = f'failed to update machine image "{name}": {error}'
        return Choice(version, Update(why, needed.reason, succeeded=False))
    return _updated(name, version, target, needed.reason)


def _updated(name: str, version: str, target: str | None, reason: str) -> Choice:
    if target is None:
        return Choice(version)
    return Choice(target, Update(f'Updated machine image "{name}" from "{version}" to "{target}"', reason))


def _for_kubelet(
    found: Object, image: Object, worker: Object, *, kubelet: Kubelet, auto: bool, now: datetime
) -> Choice:
    """Choice for a pool whose image version does not support the new version of kubelet."""
    name, version = text(image.get("name")), text(found.get("version"))
    why = f'"{version}" {", ".join(obstacles(found, worker, kubelet.after))}'
    strategy = strategy_of(image)
    if not (auto or kubelet.is_forced):
        off = "automatic updates of images are off (spec.maintenance.autoUpdate.machineImageVersion)"
        return Choice(version, obstacle=f'machine image "{name}": {why}, and {off}')
    try:
        target = following(version, image, worker, kubelet=kubelet.after, is_forced=kubelet.is_forced, now=now)
    except _NoVersion:
        target = None
    if target is None:
        others = "".join(f", {each}" for each in _unsuitable(image, worker, version, kubelet.after, now))
        no_other = f'no version follows by the image update strategy "{strategy}"'
        return Choice(version, obstacle=f'machine image "{name}": {why}{others}, and {no_other}')
    return _updated(name, version, target, f"Machine image version {why} (image update strategy: {strategy})")


def strategy_of(image: Object) -> str:
    return text(image.get("updateStrategy")) or MAJOR


# --- candidates


def need(
    found: Object | None, worker: Object, *, strategy: str, kubelet: Version | None, auto: bool, now: datetime
) -> Need | None:
    """Reason for an update. Args: found: entry of the present version in the cloud profile."""
    by_strategy = f"(image update strategy: {strategy})"
    if found is None:
        return Need(NOT_IN_PROFILE, is_forced=True)
    if why := ", ".join(obstacles(found, worker, kubelet)):
        return Need(f'Machine image version "{text(found.get("version"))}" {why} {by_strategy}', is_forced=True)
    if is_expired(found, now):
        return Need(f"Machine image version expired - force update required {by_strategy}", is_forced=True)
    if auto:
        return Need(f"Automatic update of the machine image version is configured {by_strategy}", is_forced=False)
    return None


def following(
    version: str, image: Object, worker: Object, *, kubelet: Version | None, is_forced: bool, now: datetime
) -> str | None:
    """Next version; None if there is none.

    Raises:
        _NoVersion: none follows, though the version must be replaced.
    """
    strategy, current = strategy_of(image), parse_version(version)
    versions = [each for each in mappings(image.get("versions")) if suits(each, worker, kubelet)]
    candidates = offers(versions, version, now=now)
    found = by_choice(same_minor(candidates, version)) or by_choice(_wider(candidates, current, strategy))
    if not found and is_forced:
        found = by_force(_next_existing(candidates, current, strategy))
        if not found:
            unsuitable = list(_unsuitable(image, worker, version, kubelet, now))
            raise _NoVersion(_why_none(text(image.get("name")), version, strategy, unsuitable))
    return found[0].name if found else None


def _unsuitable(image: Object, worker: Object, version: str, kubelet: Version | None, now: datetime) -> list[str]:
    """Higher versions that do not suit the pool, with the reasons."""
    higher = {each.name for each in offers(mappings(image.get("versions")), version, now=now)}
    found = (
        f'"{text(each.get("version"))}" {", ".join(reasons)}'
        for each in mappings(image.get("versions"))
        if text(each.get("version")) in higher and (reasons := list(obstacles(each, worker, kubelet)))
    )
    return list(islice(found, _MOST_NAMED))


def _wider(candidates: Sequence[Offer], current: Version | None, strategy: str) -> list[Offer]:
    """Candidates of the strategy if there is no higher patch version."""
    if strategy == MAJOR:
        return list(candidates)
    if strategy == MINOR:
        return [each for each in candidates if current is not None and each.version.major == current.major]
    return []


def _next_existing(candidates: Sequence[Offer], current: Version | None, strategy: str) -> list[Offer]:
    """Those of the next existing minor or major version, even if all of it has expired."""
    if strategy == MAJOR or current is None:
        return []
    if strategy == MINOR:
        return _lowest(candidates, lambda version: version.major, above=current.major)
    same = [each for each in candidates if each.version.major == current.major]
    return _lowest(same, lambda version: version.minor, above=current.minor)


def _lowest(candidates: Sequence[Offer], part: Callable[[Version], int], *, above: int) -> list[Offer]:
    least = min((part(each.version) for each in candidates if part(each.version) > above), default=None)
    return [each for each in candidates if part(each.version) == least]


def _why_none(image: str, version: str, strategy: str, unsuitable: Sequence[str]) -> str:
    if strategy == MAJOR:
        why = f"failed to determine version for forceful update: {_NO_OTHER_IMAGE.format(image=image, version=version)}"
    else:
        why = (
            f'cannot perform forceful update of expired version "{version}". No suitable version found in CloudProfile '
            "- this is most likely a misconfiguration of the CloudProfile"
        )
    others = f" (higher versions that do not suit the worker pool: {'; '.join(unsuitable)})" if unsuitable else ""
    return (
        f'failed to determine the target version for maintenance of machine image "{image}" with strategy '
        f'"{strategy}": {why}{others}'
    )
