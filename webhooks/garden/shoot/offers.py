"""What a Shoot takes from its cloud profile must be there, usable, and available in the zones of the pool.

Nothing is looked at that does not change: see `ratcheted`. Reads what `profile` reads.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from gardener.garden import profiles
from gardener.garden.profiles import is_expired
from gardener.garden.versions import Version, parse_constraint, parse_version
from kube.objects import Object, mapping, mappings, text, texts
from kube.quantities import parse_quantity
from kube.validation import FieldError, duplicate, forbidden, invalid, not_supported, required
from webhooks.garden.common.findings import Denial, Finding
from webhooks.garden.common.write import Write, depends_on
from webhooks.garden.shoot.parts import VERSION, Pool, differing_pools, kubernetes_version
from webhooks.garden.shoot.profile import Offer, architecture, own_offer


class _Chosen(NamedTuple):
    """From where, and when, a Shoot chooses."""

    offer: Offer
    region: str
    zones: Mapping[str, Object]
    """Of the region."""
    now: datetime


@depends_on("cloudProfile", "cloudProfileName", "kubernetes", "provider", "region")
def offered(write: Write) -> Iterator[Finding]:
    """For `references`."""
    offer = own_offer(write)
    if offer is None and not profiles.profile_of(write.spec)[1]:
        return  # It is a finding of its own that none is named.
    if offer is None:
        yield Denial(
            f"could not find the cloud profile of the Shoot: {_named(write.spec)} not found", "spec.cloudProfile"
        )
        return
    for error in _errors(write, offer):
        yield Denial(str(error), error.path)


def _named(spec: Object) -> str:
    resource, name = profiles.profile_of(spec)
    return f'{resource.kind} "{name}"'


def _errors(write: Write, offer: Offer) -> Iterator[FieldError]:
    spec = write.spec
    provider, kubernetes = spec.get("provider") or {}, spec.get("kubernetes") or {}
    given = provider.get("type") or ""
    if given != offer.provider:
        detail = f'provider type in shoot must equal provider type of referenced CloudProfile: "{text(offer.provider)}"'
        yield invalid("spec.provider.type", given, detail)
    region = spec.get("region") or ""
    chosen = _Chosen(offer, region, offer.zones.get(region, {}), write.now)
    if region not in offer.zones:
        yield not_supported("spec.region", region, sorted(offer.zones))
    yield from _version_errors(chosen, VERSION, kubernetes.get("version") or "", is_new=write.is_create)
    pools = differing_pools(write, "cloudProfile", "cloudProfileName", "kubernetes", "region")
    yield from pools.found(partial(_pool_errors, chosen, spec))


def _version_errors(chosen: _Chosen, path: str, version: str, *, is_new: bool) -> Iterator[FieldError]:
    """Those that have one already may keep an expired one, or go to it."""
    versions = chosen.offer.versions
    if version not in versions or (is_new and _has_ended(chosen, chosen.offer.version_ends.get(version))):
        allowed = [name for name, each in versions.items() if not (is_new and is_expired(each, chosen.now))]
        yield not_supported(path, version, sorted(allowed, key=lambda each: parse_version(each) or Version(0, 0, 0)))


def _has_ended(chosen: _Chosen, ends: datetime | None) -> bool:
    return ends is not None and ends <= chosen.now


def _pool_errors(chosen: _Chosen, spec: Object, pool: Pool) -> Iterator[FieldError]:
    path, worker, machine = pool.path, pool.worker, pool.machine
    if version := pool.kubernetes.get("version"):
        yield from _version_errors(chosen, f"{path}.kubernetes.version", version, is_new=pool.is_new)
    distinct = set(pool.zones)
    if len(distinct) < len(pool.zones) or not distinct <= chosen.zones.keys():
        yield from _zone_errors(chosen, path, pool.zones)
    machine_type = chosen.offer.machine_types.get(machine.get("type") or "")
    yield from _machine_type_errors(chosen, pool, machine_type)
    yield from _image_errors(chosen, spec, pool)
    storage = mapping(machine_type.get("storage")) if machine_type is not None else {}
    yield from _volume_errors(chosen, f"{path}.volume", worker.get("volume") or {}, worker, storage)
    for index, data in enumerate(worker.get("dataVolumes") or ()):
        yield from _volume_errors(chosen, f"{path}.dataVolumes[{index}]", data, worker, {})


def _zone_errors(chosen: _Chosen, path: str, zones: list[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, zone in enumerate(zones):
        where = f"{path}.zones[{index}]"
        if not chosen.zones:
            yield invalid(
                where, chosen.region, "this region does not support availability zones, please do not configure them"
            )
        elif zone not in chosen.zones:
            yield not_supported(where, zone, sorted(chosen.zones))
        elif zone in seen:
            yield duplicate(where, zone)
        seen.add(zone)


def _machine_type_errors(chosen: _Chosen, pool: Pool, found: Object | None) -> Iterator[FieldError]:
    path, name = f"{pool.path}.machine.type", pool.machine.get("type") or ""
    if found is None or found.get("usable") is False:
        types = chosen.offer.machine_types
        usable = sorted(each for each, machine_type in types.items() if machine_type.get("usable") is not False)
        yield not_supported(path, name, usable)
        return
    offers, wanted = architecture(found), architecture(pool.machine)
    if offers != wanted:
        yield invalid(path, name, f"machine type {name} has architecture {offers}, not {wanted}")
    if chosen.offer.unavailable:
        yield from _unavailable(chosen, path, name, "unavailableMachineTypes", pool.worker)


def _unavailable(chosen: _Chosen, path: str, name: str, field: str, worker: Object) -> Iterator[FieldError]:
    unavailable = chosen.offer.unavailable
    wanted = [zone for zone in texts(worker.get("zones")) if (chosen.region, zone, field, name) in unavailable]
    if wanted:
        yield invalid(path, name, f"is not available in the zones {', '.join(wanted)} of the pool")


# --- images


def _image_errors(chosen: _Chosen, spec: Object, pool: Pool) -> Iterator[FieldError]:
    path, name, version = f"{pool.path}.machine.image", pool.image.get("name"), pool.image.get("version") or ""
    if not name:
        yield required(path, "the cloud profile has no image for this pool: name one")
        return
    images = chosen.offer.images
    found = chosen.offer.image_versions.get((name, version))
    if found is None or (pool.is_new and _has_ended(chosen, chosen.offer.image_ends.get((name, version)))):
        field = "version" if name in images else "name"
        yield not_supported(f"{path}.{field}", text(pool.image.get(field)), _images(chosen, images))
        return
    wanted = architecture(pool.machine)
    if wanted not in found.architectures:
        detail = f"image {name}:{version} has architectures {', '.join(found.architectures)}, not {wanted}"
        yield invalid(f"{path}.version", version, detail)
    if found.kubelets:
        yield from _kubelet_errors(f"{path}.version", found.kubelets, spec, pool)
    if pool.cri:
        yield from _runtime_errors(f"{pool.path}.cri", found.runtimes, pool.cri)


def _images(chosen: _Chosen, images: dict[str, Object]) -> list[str]:
    return [
        f"{name}:{text(version.get('version'))}"
        for name, image in images.items()
        for version in mappings(image.get("versions"))
        if not is_expired(version, chosen.now)
    ]


def _kubelet_errors(path: str, constraint: str, spec: Object, pool: Pool) -> Iterator[FieldError]:
    kubelet = parse_version(text(pool.kubernetes.get("version"))) or kubernetes_version(spec)
    if kubelet is None:
        return
    try:
        suits = parse_constraint(constraint)(kubelet)
    except ValueError:
        return  # A finding about the profile, not about this Shoot.
    if not suits:
        yield forbidden(path, f"the image works with kubelet {constraint} only, which the version of the pool is not")


def _runtime_errors(path: str, supported: Mapping[str, frozenset[str]], cri: Object) -> Iterator[FieldError]:
    name = cri.get("name")
    if not name:
        return
    runtimes = supported.get(name)
    if runtimes is None:
        yield not_supported(f"{path}.name", name, sorted(supported))
        return
    for index, runtime in enumerate(cri.get("containerRuntimes") or ()):
        if text(runtime.get("type")) not in runtimes:
            where = f"{path}.containerRuntimes[{index}].type"
            yield not_supported(where, text(runtime.get("type")), sorted(runtimes))


# --- volumes


def _volume_errors(chosen: _Chosen, path: str, volume: Object, worker: Object, storage: Object) -> Iterator[FieldError]:
    """Args: storage: of the machine type, if the volume is in its place."""
    name, types = volume.get("type") or "", chosen.offer.volume_types
    found = types.get(name)
    if name and (found is None or found.get("usable") is False):
        usable = sorted(each for each, volume_type in types.items() if volume_type.get("usable") is not False)
        yield not_supported(f"{path}.type", name, usable)
        return
    if name and chosen.offer.unavailable:
        yield from _unavailable(chosen, f"{path}.type", name, "unavailableVolumeTypes", worker)
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
