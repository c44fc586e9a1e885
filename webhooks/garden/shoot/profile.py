"""The cloud profile of a Shoot, and what is filled in from it: full versions, and images of machines.

Reads `CLOUD_PROFILES`, `NAMESPACED_CLOUD_PROFILES`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from gardener.api.garden import CLOUD_PROFILES
from gardener.garden import profiles
from gardener.garden.profiles import expiration, image_versions, is_expired, kubernetes_versions
from gardener.garden.users import parents
from gardener.garden.versions import Version, has_prefix, parse_version
from kube.objects import Object, mapping, mappings, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from webhooks.garden.common.derived import Derived
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.parts import kubernetes_version, stored_pools, workers_of
from webhooks.rules.shapes import child

_FULL = 3
"""Parts of a version of Kubernetes."""


def profile_of(write: Write, shoot_spec: Object) -> Object | None:
    """The spec of the profile, with what the project changes in it; None: there is none (yet)."""
    resource, name = profiles.profile_of(shoot_spec)
    found = write.garden.need(resource, name, write.namespace if resource.namespaced else "")
    if found is None:
        return None
    return spec(found) if resource == CLOUD_PROFILES else _with_parent(write, found)


def own_profile(write: Write) -> Object | None:
    """`profile_of` the Shoot itself, for validation."""
    return write.once(_own_profile)


def _own_profile(write: Write) -> Object | None:
    return profile_of(write, write.spec)


def _with_parent(write: Write, profile: Object) -> Object | None:
    """What the status of a project's own profile says, or is going to say; None: it has no parent (yet)."""
    found = (write.garden.need(CLOUD_PROFILES, parent.name) for parent in parents(profile))
    parent = next((each for each in found if each is not None), None)
    return None if parent is None else _merged(spec(parent), spec(profile))


_merged = Derived(profiles.merged, most=4)


class Image(NamedTuple):
    """A version of an image."""

    architectures: list[str]
    kubelets: str
    """Constraint on their version, if there is one."""
    runtimes: dict[str, frozenset[str]]
    """Container runtimes by the interface to them (CRI)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What there is in a profile, by name."""

    provider: object
    """Type of the infrastructure; anything at all if the profile is not valid."""
    versions: dict[str, Object]
    images: dict[str, Object]
    image_versions: dict[tuple[str, str], Image]
    machine_types: dict[str, Object]
    volume_types: dict[str, Object]
    zones: dict[str, dict[str, Object]]
    """By region."""
    version_ends: dict[str, datetime]
    image_ends: dict[tuple[str, str], datetime]
    """When versions expire; most never do."""
    unavailable: frozenset[tuple[str, str, str, str]]
    """Region, zone, field of the zone, and what this says is not there."""


def _offer(profile: Object) -> Offer:
    zones = {name: _by_name(region.get("zones")) for name, region in _by_name(profile.get("regions")).items()}
    versions, images = kubernetes_versions(profile), image_versions(profile)
    return Offer(
        provider=profile.get("type"),
        versions=versions,
        images=_by_name(profile.get("machineImages")),
        image_versions={key: _image(each) for key, each in images.items()},
        machine_types=_by_name(profile.get("machineTypes")),
        volume_types=_by_name(profile.get("volumeTypes")),
        zones=zones,
        version_ends={key: ends for key, each in versions.items() if (ends := expiration(each)) is not None},
        image_ends={key: ends for key, each in images.items() if (ends := expiration(each)) is not None},
        unavailable=frozenset(
            (region, name, field, what)
            for region, of_region in zones.items()
            for name, zone in of_region.items()
            for field in ("unavailableMachineTypes", "unavailableVolumeTypes")
            for what in texts(zone.get(field))
        ),
    )


def _image(version: Object) -> Image:
    return Image(architectures(version), text(version.get("kubeletVersionConstraint")), _runtimes(version))


def _runtimes(image_version: Object) -> dict[str, frozenset[str]]:
    return {
        text(cri.get("name")): frozenset(text(each.get("type")) for each in mappings(cri.get("containerRuntimes")))
        for cri in mappings(image_version.get("cri"))
    } or {"containerd": frozenset()}


def _by_name(entries: object) -> dict[str, Object]:
    return {text(each.get("name")): each for each in mappings(entries)}


offer_of = Derived(_offer, most=16)


def own_offer(write: Write) -> Offer | None:
    """What is in `own_profile`."""
    return write.once(_own_offer)


def _own_offer(write: Write) -> Offer | None:
    profile = own_profile(write)
    return None if profile is None else offer_of(profile)


def architecture(machine: Object) -> str:
    return text(machine.get("architecture")) or "amd64"


def architectures(image_version: Object) -> list[str]:
    return texts(image_version.get("architectures")) or ["amd64"]


# --- versions of Kubernetes


def set_versions(write: Write) -> None:
    """`1.30`, `1` or nothing becomes the highest such version that is neither expired nor a preview."""
    if write.is_deleting:
        return
    kubernetes = child(write.own_spec(), "kubernetes")
    given = text(kubernetes.get("version"))
    if not given and write.is_update and (given := text(at(write.old_spec, "kubernetes", "version"))):
        kubernetes["version"] = given
    partial = [] if _is_full(given) else [kubernetes]
    partial += [own for own in _of_pools(write) if not _is_full(text(own.get("version")))]
    if not partial:
        return
    offered = list(_usable(profile_of(write, write.spec) or {}, write.now))
    for each in partial:
        most = None if each is kubernetes else kubernetes_version(write.spec)
        if (highest := _highest(offered, text(each.get("version")), most)) is not None:
            each["version"] = highest


def _of_pools(write: Write) -> Iterator[Object]:
    for worker in workers_of(write):
        own = worker.get("kubernetes")
        if own and own.get("version") is not None:
            yield own


def _is_full(version: str) -> bool:
    return version.count(".") + 1 >= _FULL


def _usable(profile: Object, now: datetime) -> Iterator[str]:
    for version in mappings_at(profile, "kubernetes", "versions"):
        if version.get("classification") != "preview" and not is_expired(version, now):
            yield text(version.get("version"))


def _highest(offered: Iterable[str], prefix: str, most: Version | None) -> str | None:
    found = [(parsed, each) for each in offered if has_prefix(each, prefix) and (parsed := parse_version(each))]
    return max((each for each in found if most is None or each[0] <= most), default=(None, None))[1]


# --- images


def set_images(write: Write) -> None:
    """A pool without image, or without version of it, has what it had before, or else what the profile has first."""
    if write.is_deleting:
        return
    wanting = [worker for worker in workers_of(write) if not at(worker, "machine", "image", "version")]
    if not wanting:
        return
    profile = profile_of(write, write.spec) or {}
    before = stored_pools(write)
    for worker in wanting:
        machine = child(worker, "machine")
        given, old = mapping(machine.get("image")), mapping_at(before, text(worker.get("name")), "machine", "image")
        name = text(given.get("name"))
        if old.get("version") and name in {"", old.get("name")}:
            machine["image"] = {**old, **{field: value for field, value in given.items() if value}}
        elif (found := _default_image(profile, name, architecture(machine), write.now)) is not None:
            machine["image"] = {**given, **found}


def _default_image(profile: Object, name: str, wanted: str, now: datetime) -> Object | None:
    for image in mappings(profile.get("machineImages")):
        offered = [each for each in mappings(image.get("versions")) if wanted in architectures(each)]
        if offered and name in {"", image.get("name")}:
            latest = _latest_image(offered, now)
            return None if latest is None else {"name": image.get("name"), "version": latest}
    return None


def _latest_image(offered: Iterable[Object], now: datetime) -> str | None:
    ranked = [
        (not is_expired(each, now), each.get("classification") != "deprecated", parsed, text(each.get("version")))
        for each in offered
        if each.get("classification") != "preview" and (parsed := parse_version(text(each.get("version"))))
    ]
    return max(ranked)[-1] if ranked else None
