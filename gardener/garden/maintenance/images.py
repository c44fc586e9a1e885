"""The version of a machine image that follows, by the update strategy of the image in the cloud profile.

All strategies prefer a higher patch version of the same minor version. Where there is none, and

    strategy   updates are wanted                         the version must not be used any more
    patch      it stays                                   the next minor version that there is
    minor      the highest of the same major version      the next major version that there is
    major      the highest                                it cannot be updated
"""

from collections.abc import Callable, Sequence
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
from gardener.garden.versions import Version, parse_constraint, parse_version
from kube.objects import Object, mapping, mappings, text, texts
from kube.paths import mapping_at

PATCH, MINOR, MAJOR = "patch", "minor", "major"
_CONTAINERD = "containerd"
_NO_OTHER_IMAGE = (
    'either the machine image "{image}" is reaching end of life and migration to another machine image is required or '
    "there is a misconfiguration in the CloudProfile. If it is the latter, make sure the machine image in the "
    "CloudProfile has at least one version that is not expired, not in preview and greater or equal to the current "
    'Shoot image version "{version}"'
)


class NoImage(Exception):
    """The cloud profile has no image of this name."""


def update(
    worker: Object, images: Sequence[Object], *, kubelet: Version | None, auto: bool, now: datetime
) -> tuple[str, Update | None]:
    """The version that is to be, and what is said of it; None: it stays as it is.

    Args:
        worker: the pool.
        images: of the cloud profile.
        kubelet: the version of it that the pool has.
        auto: whether the user wants updates anyway.
        now: which decides what has expired.

    Raises: NoImage.
    """
    machine = mapping(worker.get("machine"))
    wanted = mapping(machine.get("image"))
    name, version = text(wanted.get("name")), text(wanted.get("version"))
    image = next((each for each in images if each.get("name") == name), None)
    if image is None:
        raise NoImage(f'machine image "{name}" is not in the CloudProfile')
    versions = suitable(image, worker, kubelet=kubelet)
    needed = need(version, versions, strategy=strategy_of(image), auto=auto, now=now)
    if needed is None:
        return version, None
    try:
        target = following(version, image, versions, is_forced=needed.is_forced, now=now)
    except NoVersion as error:
        return version, Update(f'failed to update machine image "{name}": {error}', needed.reason, succeeded=False)
    if target is None:
        return version, None
    return target, Update(f'Updated machine image "{name}" from "{version}" to "{target}"', needed.reason)


def strategy_of(image: Object) -> str:
    return text(image.get("updateStrategy")) or MAJOR


# --- versions that a pool can use


def suitable(image: Object, worker: Object, *, kubelet: Version | None) -> list[Object]:
    architecture = text(mapping_at(worker, "machine").get("architecture")) or "amd64"
    return [
        each
        for each in mappings(image.get("versions"))
        if architecture in (texts(each.get("architectures")) or ["amd64"])
        and _runs_containers(each, mapping(worker.get("cri")))
        and _suits_kubelet(each, kubelet)
    ]


def _runs_containers(version: Object, cri: Object) -> bool:
    supported = mappings(version.get("cri")) or [{"name": _CONTAINERD}]
    wanted = text(cri.get("name")) or _CONTAINERD
    found = next((each for each in supported if each.get("name") == wanted), None)
    if found is None:
        return False
    runtimes = {text(each.get("type")) for each in mappings(found.get("containerRuntimes"))}
    return runtimes.issuperset(text(each.get("type")) for each in mappings(cri.get("containerRuntimes")))


def _suits_kubelet(version: Object, kubelet: Version | None) -> bool:
    constraint = text(version.get("kubeletVersionConstraint"))
    if not constraint or kubelet is None:
        return True
    try:
        return parse_constraint(constraint)(kubelet)
    except ValueError:
        return False


# --- which of them


def need(version: str, versions: Sequence[Object], *, strategy: str, auto: bool, now: datetime) -> Need | None:
    found, by_strategy = entry(versions, version), f"(image update strategy: {strategy})"
    if found is None:
        return Need(NOT_IN_PROFILE, is_forced=True)
    if is_expired(found, now):
        return Need(f"Machine image version expired - force update required {by_strategy}", is_forced=True)
    if auto:
        return Need(f"Automatic update of the machine image version is configured {by_strategy}", is_forced=False)
    return None


def following(version: str, image: Object, versions: Sequence[Object], *, is_forced: bool, now: datetime) -> str | None:
    """Raises: NoVersion."""
    strategy, current = strategy_of(image), parse_version(version)
    candidates = offers(versions, version, now=now)
    found = by_choice(same_minor(candidates, version)) or by_choice(_wider(candidates, current, strategy))
    if found is not None or not is_forced:
        return None if found is None else found.name
    forced = by_force(_next_existing(candidates, current, strategy))
    if forced is None:
        raise NoVersion(_why_none(text(image.get("name")), version, strategy))
    return forced.name


def _wider(candidates: Sequence[Offer], current: Version | None, strategy: str) -> list[Offer]:
    """What may be chosen if there is no higher patch version."""
    if strategy == MAJOR:
        return list(candidates)
    if strategy == MINOR:
        return [each for each in candidates if current is not None and each.version.major == current.major]
    return []


def _next_existing(candidates: Sequence[Offer], current: Version | None, strategy: str) -> list[Offer]:
    """Those of the next minor or major version that there is: it is not skipped because all of it has expired."""
    if strategy == MAJOR or current is None:
        return []
    if strategy == MINOR:
        return _lowest(candidates, lambda version: version.major, above=current.major)
    same = [each for each in candidates if each.version.major == current.major]
    return _lowest(same, lambda version: version.minor, above=current.minor)


def _lowest(candidates: Sequence[Offer], part: Callable[[Version], int], *, above: int) -> list[Offer]:
    least = min((part(each.version) for each in candidates if part(each.version) > above), default=None)
    return [each for each in candidates if part(each.version) == least]


def _why_none(image: str, version: str, strategy: str) -> str:
    if strategy == MAJOR:
        why = f"failed to determine version for forceful update: {_NO_OTHER_IMAGE.format(image=image, version=version)}"
    else:
        why = (
            f'cannot perform forceful update of expired version "{version}". No suitable version found in CloudProfile '
            "- this is most likely a misconfiguration of the CloudProfile"
        )
    return (
        f'failed to determine the target version for maintenance of machine image "{image}" with strategy '
        f'"{strategy}": {why}'
    )
