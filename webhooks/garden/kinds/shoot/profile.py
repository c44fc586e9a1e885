"""Cloud profile of a Shoot: all choices must be in it.

Unchanged values are never refused: see `ratcheted`. Reads `CLOUD_PROFILES`, `NAMESPACED_CLOUD_PROFILES`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from gardener.api.garden import CLOUD_PROFILES
from gardener.garden import profiles
from gardener.garden.machine_images import architecture, architectures, runtimes
from gardener.garden.profiles import expiration, image_versions, is_expired, kubernetes_versions
from gardener.garden.users import parents
from gardener.garden.versions import Version, parse_constraint, parse_version
from kube.objects import Object, mapping, mappings, spec, text
from kube.paths import at
from kube.quantities import parse_quantity
from kube.validation import FieldError, duplicate, forbidden, invalid, not_supported, required
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write
from webhooks.garden.shoot_spec.fields import (
    VERSION,
    Pool,
    image_of,
    is_higher,
    kubelet_of,
    own_version,
    pools_of,
    stored_pools,
)

_SOON = timedelta(days=14)


def profile_of(write: Write, shoot_spec: Object) -> Object | None:
    """Spec of the profile, with the project's changes; None if there is none (yet)."""
    resource, name = profiles.profile_of(shoot_spec)
    found = write.garden.need(resource, name, write.namespace if resource.namespaced else "")
    if found is None:
        return None
    return spec(found) if resource == CLOUD_PROFILES else _with_parent(write, found)


def _with_parent(write: Write, profile: Object) -> Object | None:
    """Merge a project's own profile into its parent, as its status does or will do; None if it has no parent (yet)."""
    found = (write.garden.need(CLOUD_PROFILES, parent.name) for parent in parents(profile))
    parent = next((each for each in found if each is not None), None)
    return None if parent is None else profiles.merged(spec(parent), spec(profile))


# --- what must be there


class _Choices(NamedTuple):
    """Choices of the profile, by name."""

    versions: dict[str, Object]
    images: dict[str, Object]
    image_versions: dict[tuple[str, str], Object]
    machine_types: dict[str, Object]
    volume_types: dict[str, Object]
    region: str
    zones: dict[str, Object]
    """Zones of the region."""
    now: datetime


def _by_name(entries: object) -> dict[str, Object]:
    return {text(each.get("name")): each for each in mappings(entries)}


def offered(write: Write) -> Iterator[Finding]:
    """Versions, images, machine and volume types, regions and zones are offered by the cloud profile."""
    profile = profile_of(write, write.spec)
    resource, name = profiles.profile_of(write.spec)
    if profile is not None:
        yield from (Denial(str(error), error.path) for error in _errors(write, profile))
    elif name:  # Another rule reports that none is named.
        message = f'could not find the cloud profile of the Shoot: {resource.kind} "{name}" not found'
        yield Denial(message, "spec.cloudProfile")


def _errors(write: Write, profile: Object) -> Iterator[FieldError]:
    spec = write.spec
    provider, kubernetes = spec.get("provider") or {}, spec.get("kubernetes") or {}
    given, wanted = provider.get("type") or "", profile.get("type")
    if given != wanted:
        detail = f'provider type in shoot must equal provider type of referenced CloudProfile: "{text(wanted)}"'
        yield invalid("spec.provider.type", given, detail)
    region, regions = spec.get("region") or "", _by_name(profile.get("regions"))
    if region not in regions:
        yield not_supported("spec.region", region, sorted(regions))
    choices = _Choices(
        versions=kubernetes_versions(profile),
        images=_by_name(profile.get("machineImages")),
        image_versions=image_versions(profile),
        machine_types=_by_name(profile.get("machineTypes")),
        volume_types=_by_name(profile.get("volumeTypes")),
        region=region,
        zones=_by_name(regions.get(region, {}).get("zones")),
        now=write.now,
    )
    yield from _version_errors(choices, VERSION, kubernetes.get("version") or "", is_new=write.is_create)
    stored = stored_pools(write)
    for pool in pools_of(write):
        yield from _pool_errors(choices, spec, pool, stored.get(pool.worker.get("name") or ""))


def _version_errors(choices: _Choices, path: str, version: str, *, is_new: bool) -> Iterator[FieldError]:
    """Check a version; existing clusters and pools may keep an expired one, or change to it."""
    found = choices.versions.get(version)
    if found is None or (is_new and is_expired(found, choices.now)):
        allowed = [name for name, each in choices.versions.items() if not (is_new and is_expired(each, choices.now))]
        yield not_supported(path, version, sorted(allowed, key=lambda each: parse_version(each) or Version(0, 0, 0)))


def _pool_errors(choices: _Choices, spec: Object, pool: Pool, stored: Object | None) -> Iterator[FieldError]:
    """Check a pool; `stored` is its former state, None if it is new."""
    path, worker = pool
    machine, zones = worker.get("machine") or {}, worker.get("zones") or []
    if version := own_version(worker):
        yield from _version_errors(choices, f"{path}.kubernetes.version", version, is_new=stored is None)
    distinct = set(zones)
    if len(distinct) < len(zones) or not distinct <= choices.zones.keys():
        yield from _zone_errors(choices, path, zones)
    machine_type = choices.machine_types.get(machine.get("type") or "")
    yield from _machine_type_errors(choices, pool, machine_type)
    yield from _image_errors(choices, spec, pool, stored)
    storage = mapping(machine_type.get("storage")) if machine_type is not None else {}
    yield from _volume_errors(choices, f"{path}.volume", worker.get("volume") or {}, worker, storage)
    for index, data in enumerate(worker.get("dataVolumes") or ()):
        yield from _volume_errors(choices, f"{path}.dataVolumes[{index}]", data, worker, {})


def _zone_errors(choices: _Choices, path: str, zones: list[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, zone in enumerate(zones):
        where = f"{path}.zones[{index}]"
        if not choices.zones:
            yield invalid(
                where, choices.region, "this region does not support availability zones, please do not configure them"
            )
        elif zone not in choices.zones:
            yield not_supported(where, zone, sorted(choices.zones))
        elif zone in seen:
            yield duplicate(where, zone)
        seen.add(zone)


def _machine_type_errors(choices: _Choices, pool: Pool, found: Object | None) -> Iterator[FieldError]:
    machine = pool.worker.get("machine") or {}
    path, name = f"{pool.path}.machine.type", machine.get("type") or ""
    if found is None or found.get("usable") is False:
        types = choices.machine_types
        usable = sorted(each for each, machine_type in types.items() if machine_type.get("usable") is not False)
        yield not_supported(path, name, usable)
        return
    offers, wanted = architecture(found), architecture(machine)
    if offers != wanted:
        yield invalid(path, name, f"machine type {name} has architecture {offers}, not {wanted}")
    yield from _unavailable(choices, path, name, "unavailableMachineTypes", pool.worker)


def _unavailable(choices: _Choices, path: str, name: str, field: str, worker: Object) -> Iterator[FieldError]:
    there = choices.zones
    without = [each for each in worker.get("zones") or () if each in there and name in (there[each].get(field) or ())]
    if without:
        yield invalid(path, name, f"is not available in the zones {', '.join(without)} of the pool")


# --- images


def _image_errors(choices: _Choices, spec: Object, pool: Pool, stored: Object | None) -> Iterator[FieldError]:
    image = image_of(pool.worker)
    path, name, version = f"{pool.path}.machine.image", image.get("name"), image.get("version") or ""
    if not name:
        yield required(path, "the cloud profile has no image for this pool; set one")
        return
    found = choices.image_versions.get((name, version))
    if found is None or (stored is None and is_expired(found, choices.now)):
        field = "version" if name in choices.images else "name"
        yield not_supported(f"{path}.{field}", text(image.get(field)), _images(choices))
        return
    if stored is not None and is_expired(found, choices.now):
        yield from _back_to_expired(path, found, image, image_of(stored))
    wanted, built_for = architecture(pool.worker.get("machine") or {}), architectures(found)
    if wanted not in built_for:
        detail = f"image {name}:{version} has architectures {', '.join(built_for)}, not {wanted}"
        yield invalid(f"{path}.version", version, detail)
    if constraint := text(found.get("kubeletVersionConstraint")):
        yield from _kubelet_errors(f"{path}.version", constraint, spec, pool)
    if (cri := pool.worker.get("cri")) and cri.get("name"):
        yield from _runtime_errors(f"{pool.path}.cri", runtimes(found), cri)


def _back_to_expired(path: str, found: Object, image: Object, before: Object) -> Iterator[FieldError]:
    """Allow a pool to go up to an expired version, as maintenance does; not down, nor to one of another image."""
    date, version = f"expired on {expiration(found):%Y-%m-%d}", text(image.get("version"))
    if image.get("name") != before.get("name"):
        detail = f"it {date}; choose a version that has not expired for another image"
    elif version != before.get("version") and not is_higher(image, before):
        detail = f"it {date}, and is lower than the current version {text(before.get('version'))}; choose another one"
    else:
        return
    yield invalid(f"{path}.version", version, detail)


def _images(choices: _Choices) -> list[str]:
    """Images for any pool, so that the text of a finding does not depend on the pool, and ratcheting works."""
    return [
        f"{name}:{text(version.get('version'))}"
        for name, image in choices.images.items()
        for version in mappings(image.get("versions"))
        if not is_expired(version, choices.now)
    ]


def _kubelet_errors(path: str, constraint: str, spec: Object, pool: Pool) -> Iterator[FieldError]:
    kubelet = kubelet_of(spec, pool.worker)
    if kubelet is None:
        return
    try:
        suits = parse_constraint(constraint)(kubelet)
    except ValueError:
        return  # The profile causes this finding, not this Shoot.
    if not suits:
        yield forbidden(
            path, f"the image only supports kubelet {constraint}; choose another image, or another version of the pool"
        )


def _runtime_errors(path: str, supported: dict[str, set[str]], cri: Object) -> Iterator[FieldError]:
    name = cri["name"]
    runtimes = supported.get(name)
    if runtimes is None:
        yield not_supported(f"{path}.name", name, sorted(supported))
        return
    for index, runtime in enumerate(cri.get("containerRuntimes") or ()):
        if text(runtime.get("type")) not in runtimes:
            where = f"{path}.containerRuntimes[{index}].type"
            yield not_supported(where, text(runtime.get("type")), sorted(runtimes))


# --- volumes


def _volume_errors(
    choices: _Choices, path: str, volume: Object, worker: Object, storage: Object
) -> Iterator[FieldError]:
    """Check a volume; `storage` is that of the machine type, if the volume replaces it."""
    name, types = volume.get("type") or "", choices.volume_types
    found = types.get(name)
    if name and (found is None or found.get("usable") is False):
        usable = sorted(each for each, volume_type in types.items() if volume_type.get("usable") is not False)
        yield not_supported(f"{path}.type", name, usable)
        return
    if name:
        yield from _unavailable(choices, f"{path}.type", name, "unavailableVolumeTypes", worker)
    least = [found["minSize"]] if found is not None and "minSize" in found else []
    least += [storage["minSize"]] if "minSize" in storage and storage.get("type") in {None, name} else []
    given = _bytes(volume.get("size")) if least else None
    for minimum in least:
        if given is not None and (bound := _bytes(minimum)) is not None and given < bound:
            yield invalid(f"{path}.size", text(volume.get("size")), f"must not be less than {minimum}")


def _bytes(size: object) -> Decimal | None:
    try:
        return parse_quantity(size) if isinstance(size, str | int) else None
    except ValueError:
        return None


# --- what has expired, or does soon


def expired(write: Write) -> Iterator[str]:
    """A warning of versions that have expired, or do soon: they are replaced in the maintenance time window."""
    profile = (profile_of(write, write.spec) or {}) if write.spec_is_changed else {}
    versions = {key: each for key, each in kubernetes_versions(profile).items() if "expirationDate" in each}
    images = {key: each for key, each in image_versions(profile).items() if "expirationDate" in each}
    for path, version, entry in _chosen(write, versions, images) if versions or images else ():
        date = expiration(entry)
        if date is not None and date <= write.now + _SOON:
            verb = "expired" if date <= write.now else "expires"
            yield f"{path}: version {version} {verb} on {date.astimezone(UTC):%Y-%m-%d}"


def _chosen(
    write: Write, versions: dict[str, Object], images: dict[tuple[str, str], Object]
) -> Iterator[tuple[str, str, Object]]:
    """Field, version, and the entry of the profile for it."""
    version = text(at(write.spec, "kubernetes", "version"))
    yield VERSION, version, versions.get(version, {})
    for pool in pools_of(write):
        version = own_version(pool.worker)
        yield f"{pool.path}.kubernetes.version", version, versions.get(version, {})
        image = image_of(pool.worker)
        name, version = text(image.get("name")), text(image.get("version"))
        yield f"{pool.path}.machine.image.version", version, images.get((name, version), {})
