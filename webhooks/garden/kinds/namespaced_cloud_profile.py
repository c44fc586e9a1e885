"""NamespacedCloudProfiles: changes and additions of a project in a CloudProfile."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES, SHOOTS
from gardener.api.garden.namespaced_cloud_profile import NAMESPACED_CLOUD_PROFILE as DEFINITION
from gardener.garden import profiles
from gardener.garden.certificates import bundle_errors
from kube.objects import Key, Object, mappings, spec, text
from kube.paths import at, mapping_at, mappings_at
from kube.validation import FieldError, duplicate, invalid, required
from webhooks.garden.common import profile_usage
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.findings import Finding, ratcheted
from webhooks.garden.common.references import exists
from webhooks.garden.common.write import Right, Write


def drop_expired(write: Write, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Drop expired versions from a new profile."""
    if not write.is_create:
        return
    profiles.drop_expired(write.spec, now())
    if images := mappings(write.spec.get("machineImages")):
        write.spec["machineImages"] = [image for image in images if image.get("versions")]


_STATUS = ("status", "cloudProfileSpec")


def spec_errors(write: Write) -> Iterator[Finding]:
    """Check the bundle, and that every version has an expiration date."""
    yield from bundle_errors("spec.caBundle", text(write.spec.get("caBundle")))
    for path, (_, version), entry in _versions(write.spec):
        if not entry.get("expirationDate"):
            yield required(f"{path}.expirationDate", f"specified version '{version}' does not set expiration date")


def _versions(of: Object) -> Iterator[tuple[str, tuple[str, str], Object]]:
    """All versions of a profile: path, name of the image (empty for Kubernetes) and version, entry."""
    for index, entry in enumerate(mappings_at(of, "kubernetes", "versions")):
        yield f"spec.kubernetes.versions[{index}]", ("", text(entry.get("version"))), entry
    for i, image in enumerate(mappings(of.get("machineImages"))):
        for j, entry in enumerate(mappings(image.get("versions"))):
            key = text(image.get("name")), text(entry.get("version"))
            yield f"spec.machineImages[{i}].versions[{j}]", key, entry


# --- the parent


def parent_errors(write: Write) -> Iterator[Finding]:
    """The parent exists, and what it offers can be changed so."""
    name = text(at(write.spec, "parent", "name"))
    yield from exists(write.garden, "spec.parent.name", CLOUD_PROFILES, name)
    if (parent := write.garden.get(CLOUD_PROFILES, name)) is not None:
        yield from _unknown_versions(write.spec, spec(parent))
        yield from _same_names(write.spec, spec(parent))
        yield from _merge_errors(write.spec, spec(parent))


def _unknown_versions(own: Object, parent: Object) -> Iterator[FieldError]:
    reason = "does not exist in parent CloudProfile and thus cannot be overridden"
    images = {text(image.get("name")) for image in mappings(parent.get("machineImages"))}
    for index, name in enumerate(text(image.get("name")) for image in mappings(own.get("machineImages"))):
        if name not in images:
            path = f"spec.machineImages[{index}].name"
            yield invalid(path, name, f"invalid machine image specified: '{name}' {reason}")
    known = {key for _, key, _ in _versions(parent)}
    for path, key, _ in _versions(own):
        image, version = key
        if key not in known and (not image or image in images):
            what = (
                f"machine image specified: '{image}@{version}'"
                if image
                else f"kubernetes version specified: '{version}'"
            )
            yield invalid(f"{path}.version", version, f"invalid {what} {reason}")


def _same_names(own: Object, parent: Object) -> Iterator[FieldError]:
    """Types are added, never replaced; one added to the parent later is accepted (by ratcheting)."""
    for field in ("machineTypes", "volumeTypes"):
        known = {text(each.get("name")) for each in mappings(parent.get(field))}
        for index, name in enumerate(text(each.get("name")) for each in mappings(own.get(field))):
            if name in known:
                yield duplicate(f"spec.{field}[{index}].name", name)


def _merge_errors(own: Object, parent: Object) -> Iterator[Finding]:
    """Return errors in the merged profile, unless the parent alone causes them."""
    path, result = ".".join(_STATUS), profiles.merged(parent, own)
    found = profiles.spec_errors(result, path)
    before = profiles.spec_errors(parent, path)
    yield from ratcheted(found, _as_status(result), before, _as_status(parent))


def _as_status(merged: Object) -> Object:
    return {"status": {"cloudProfileSpec": merged}}


# --- changes


def expired_dates(write: Write, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Iterator[Finding]:
    """Rule for `changes`: new expiration dates are in the future, unless versions have expired at that date already."""
    stored = [_dates(write.old_spec), _dates(mapping_at(write.old, *_STATUS))]
    moment = now()
    for path, key, entry in _versions(write.spec):
        date = entry.get("expirationDate")
        if profiles.is_expired(entry, moment) and not any(dates.get(key) == date for dates in stored):
            yield invalid(f"{path}.expirationDate", date, f"expiration date of version '{key[1]}' is in the past")


def _dates(of: Object) -> dict[tuple[str, str], object]:
    return {key: entry.get("expirationDate") for _, key, entry in _versions(of)}


def overrides_in_use(write: Write, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Iterator[Finding]:
    """Rule for `changes`: a version that a Shoot uses, and that has expired in the parent, stays."""
    parent = write.garden.get(CLOUD_PROFILES, text(at(write.spec, "parent", "name")))
    if write.is_deleting or parent is None:
        return
    moment = now()
    expired = {key for _, key, entry in _versions(spec(parent)) if profiles.is_expired(entry, moment)}
    gone = (_dates(write.old_spec).keys() - _dates(write.spec).keys()) & expired
    versions = {version for image, version in gone if not image}
    shoots = profile_usage.shoots_of(write.garden, Key(write.namespace, write.name))
    yield from profile_usage.used_by_shoots(shoots, f'NamespacedCloudProfile "{write.name}"', versions, gone)


def rights(write: Write) -> Iterator[Right]:
    """Require a right for overrides: not every author of a profile may extend the life of versions."""
    for field in ("kubernetes", "machineImages"):
        if write.changed("spec", field):
            resource = NAMESPACED_CLOUD_PROFILES
            yield Right(
                verb=f"modify-spec-{field.lower()}",
                resource=resource,
                namespace=write.namespace,
                name=write.name,
                denial=f'user "{write.user.name}" is not allowed to modify .spec.{field} for "{resource.plural}"',
            )


NAMESPACED_CLOUD_PROFILE = Kind(
    definition=DEFINITION,
    defaults=(drop_expired,),
    checks=(spec_errors,),
    references=(parent_errors,),
    changes=(expired_dates, overrides_in_use),
    rights=(rights,),
    reads=(CLOUD_PROFILES, SHOOTS),
)
