"""Full versions of Kubernetes, and images of machines, from the cloud profile of a Shoot.

Reads `CLOUD_PROFILES`, `NAMESPACED_CLOUD_PROFILES`.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from gardener.garden.machine_images import suits
from gardener.garden.profiles import image_versions, is_expired
from gardener.garden.versions import Version, has_prefix, parse_version
from kube.objects import Object, mapping, mappings, text
from kube.paths import at, mapping_at, mappings_at
from webhooks.garden.common.write import Write
from webhooks.garden.kinds.shoot.profile import profile_of
from webhooks.garden.shoot_spec.fields import is_higher, kubelet_of, kubernetes_version, stored_pools, workers_of
from webhooks.rules.shapes import child

_FULL = 3
"""Number of parts of a full version."""


def set_versions(write: Write) -> None:
    """Replace `1.30`, `1` or no version by the highest such version that is neither expired nor a preview."""
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
    """Complete images: a pool without image, or without version of it, keeps its former one, or gets the profile's
    first. A partial version (`1.2`, `1`) becomes the highest such one, but none below the former one.

    A version that no longer suits the pool after this request is replaced if the image has a higher one that does.
    """
    if write.is_deleting:
        return
    wanting = [each for each in workers_of(write) if not _is_full(text(at(each, "machine", "image", "version")))]
    if not wanting:
        return
    profile = profile_of(write, write.spec) or {}
    before, exact = stored_pools(write), image_versions(profile)
    for worker in wanting:
        stored = mapping(before.get(text(worker.get("name"))))
        machine = child(worker, "machine")
        given, old = mapping(machine.get("image")), mapping_at(stored, "machine", "image")
        name, kubelet = text(given.get("name")), kubelet_of(write.spec, worker)
        if part := text(given.get("version")):
            if (name, part) not in exact and part != old.get("version"):
                found = _default_image(profile, name, worker, kubelet, write.now, part=part)
                machine["image"] = _of_part(given, old, found)
        elif old.get("version") and name in {"", old.get("name")}:
            kept = {**old, **{field: value for field, value in given.items() if value}}
            if _stops_to_suit(write, profile, stored, worker):
                higher = _default_image(profile, text(old.get("name")), worker, kubelet, write.now)
                kept |= higher if higher is not None and is_higher(higher, old) else {}
            machine["image"] = kept
        elif (found := _default_image(profile, name, worker, kubelet, write.now)) is not None:
            machine["image"] = {**given, **found}


def _of_part(given: Object, old: Object, found: Object | None) -> Object:
    """Return the given image with the found version, or the former one if that is higher; unchanged without either."""
    is_same = old.get("name") == given.get("name") and has_prefix(text(old.get("version")), text(given.get("version")))
    if is_same and (found is None or not is_higher(found, old)):
        return {**given, "version": old["version"]}
    return {**given, **(found or {})}


def _stops_to_suit(write: Write, profile: Object, stored: Object, worker: Object) -> bool:
    old = mapping_at(stored, "machine", "image")
    version = image_versions(profile).get((text(old.get("name")), text(old.get("version"))))
    if version is None or not suits(version, stored, kubelet_of(write.old_spec, stored)):
        return False
    return not suits(version, worker, kubelet_of(write.spec, worker))


def _default_image(
    profile: Object, name: str, worker: Object, kubelet: Version | None, now: datetime, *, part: str = ""
) -> Object | None:
    """Return the latest version, of the first image that has one for the pool; an expired one only if all are.

    Args: part: first parts of the version, such as `1.2`.
    """
    expired = None
    for image in mappings(profile.get("machineImages")):
        if name not in {"", image.get("name")}:
            continue
        offered = (each for each in mappings(image.get("versions")) if has_prefix(text(each.get("version")), part))
        suitable = [each for each in offered if suits(each, worker, kubelet)]
        if (latest := _latest_image(suitable, now)) is None:
            continue
        found: Object = {"name": image.get("name"), "version": latest.get("version")}
        if not is_expired(latest, now):
            return found
        expired = expired or found
    return expired


def _latest_image(offered: Iterable[Object], now: datetime) -> Object | None:
    ranked = [
        (not is_expired(each, now), each.get("classification") != "deprecated", parsed, each)
        for each in offered
        if each.get("classification") != "preview" and (parsed := parse_version(text(each.get("version"))))
    ]
    return max(ranked, key=lambda each: each[:3], default=(None,))[-1]
