"""Cloud profiles: validation of their spec, expired versions, and changes by profiles of projects."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES
from gardener.garden.certificates import bundle_errors
from gardener.garden.users import parents
from gardener.garden.versions import Version, parse_constraint, parse_version
from kube.clock import time_or_none
from kube.objects import Key, Object, key, mapping, mappings, spec, text, texts
from kube.paths import at, mapping_at, mappings_at
from kube.resources import Resource
from kube.validation import FieldError, duplicates, forbidden, invalid, label_errors, label_selector_errors

SUPPORTED = "supported"

# --- the profile of a Shoot


def profile_of(shoot_spec: Object) -> tuple[Resource, str]:
    """Kind and name of the profile of a Shoot; that of a project is in the Shoot's namespace."""
    reference = mapping(shoot_spec.get("cloudProfile"))
    name = text(reference.get("name")) or text(shoot_spec.get("cloudProfileName"))
    is_of_project = reference.get("kind") == NAMESPACED_CLOUD_PROFILES.kind
    return (NAMESPACED_CLOUD_PROFILES if is_of_project else CLOUD_PROFILES), name


def offered(resource: Resource, profile: Object) -> Object:
    """Offer of a profile to Shoots, as the spec of a CloudProfile; empty if it is not rendered yet."""
    if resource == NAMESPACED_CLOUD_PROFILES:
        return mapping_at(profile, "status", "cloudProfileSpec")
    return mapping(profile.get("spec"))


def chosen_from(shoot: Object, find: Callable[[Resource, Key], Object | None]) -> Object | None:
    """Offer to a Shoot, independent of the status of a project's own profile; None if there is none (yet)."""
    resource, name = profile_of(spec(shoot))
    if resource == CLOUD_PROFILES:
        profile = find(resource, Key("", name))
        return None if profile is None else spec(profile)
    own = find(resource, Key(key(shoot).namespace, name)) or {}
    found = (find(CLOUD_PROFILES, each) for each in parents(own))
    parent = next((each for each in found if each is not None), None)
    return None if parent is None else merged(spec(parent), spec(own))


# --- expiration


def expiration(version: Object) -> datetime | None:
    """Expiration date of a version; None if it never expires."""
    return time_or_none(version.get("expirationDate"))


def is_expired(version: Object, now: datetime) -> bool:
    expires = expiration(version)
    return expires is not None and expires <= now


def drop_expired(spec: Object, now: datetime) -> None:
    """Remove expired versions from the spec of a profile, or of a project's own, in place; images may lose all."""
    for holder in (mapping(spec.get("kubernetes")), *mappings(spec.get("machineImages"))):
        if "versions" in holder:
            holder["versions"] = [each for each in mappings(holder["versions"]) if not is_expired(each, now)]


def is_supported(version: Object) -> bool:
    """Whether a version is supported, also by default."""
    return version.get("classification") in {None, SUPPORTED}


# --- contents by name


def kubernetes_versions(spec: Object) -> dict[str, Object]:
    return {text(each.get("version")): each for each in mappings_at(spec, "kubernetes", "versions")}


def image_versions(spec: Object) -> dict[tuple[str, str], Object]:
    """Versions of images, by name of the image and version."""
    return {
        (text(image.get("name")), text(each.get("version"))): each
        for image in mappings(spec.get("machineImages"))
        for each in mappings(image.get("versions"))
    }


# --- validation


def spec_errors(spec: Object, path: str) -> Iterator[FieldError]:
    yield from bundle_errors(f"{path}.caBundle", text(spec.get("caBundle")))
    yield from label_selector_errors(f"{path}.seedSelector", mapping(spec.get("seedSelector")))
    yield from _kubernetes_errors(mappings_at(spec, "kubernetes", "versions"), f"{path}.kubernetes.versions")
    for index, image in enumerate(mappings(spec.get("machineImages"))):
        yield from _image_errors(mappings(image.get("versions")), f"{path}.machineImages[{index}].versions")
    for index, region in enumerate(mappings(spec.get("regions"))):
        yield from label_errors(f"{path}.regions[{index}].labels", mapping(region.get("labels")))
    yield from _bastion_errors(spec, f"{path}.bastion")


def _kubernetes_errors(versions: Sequence[Object], path: str) -> Iterator[FieldError]:
    yield from _classification_errors(versions, path)
    latest = max(versions, key=_order, default={})
    if latest.get("expirationDate"):
        reason = f"expiration date of latest kubernetes version ('{text(latest.get('version'))}') must not be set"
        yield invalid(f"{path}[].expirationDate", latest["expirationDate"], reason)


def _order(version: Object) -> Version:
    return parse_version(text(version.get("version"))) or Version(0, 0, 0)


def _image_errors(versions: Sequence[Object], path: str) -> Iterator[FieldError]:
    yield from _classification_errors(versions, path)
    for index, version in enumerate(versions):
        written = text(version.get("version"))
        if parse_version(written) is None:
            yield invalid(f"{path}[{index}].version", written, "could not parse version. Use a semantic version.")
        if constraint := version.get("kubeletVersionConstraint"):
            yield from _constraint_errors(f"{path}[{index}].kubeletVersionConstraint", text(constraint))
        yield from _runtime_errors(mappings(version.get("cri")), f"{path}[{index}].cri")


def _runtime_errors(runtimes: Sequence[Object], path: str) -> Iterator[FieldError]:
    yield from duplicates(path, (text(each.get("name")) for each in runtimes), field="name")
    for index, each in enumerate(runtimes):
        types = (text(runtime.get("type")) for runtime in mappings(each.get("containerRuntimes")))
        yield from duplicates(f"{path}[{index}].containerRuntimes", types, field="type")


def _constraint_errors(path: str, constraint: str) -> Iterator[FieldError]:
    try:
        parse_constraint(constraint)
    except ValueError as error:
        yield invalid(path, constraint, f"cannot parse the constraint: {error}")


def _classification_errors(versions: Sequence[Object], path: str) -> Iterator[FieldError]:
    """Errors about minor versions with more than one `supported` version."""
    supported = [
        (index, text(version.get("version"))) for index, version in enumerate(versions) if _is_called_supported(version)
    ]
    minors = [_minor(version) for _, version in supported]
    for index, version in supported:
        if minors.count(_minor(version)) > 1:
            yield forbidden(
                f"{path}[{index}]",
                f'unable to add version "{version}" with classification "{SUPPORTED}". '
                f'Only one "{SUPPORTED}" version is allowed per minor version',
            )


def _is_called_supported(version: Object) -> bool:
    return version.get("classification") == SUPPORTED and parse_version(text(version.get("version"))) is not None


def _minor(version: str) -> tuple[int, int]:
    parsed = parse_version(version) or Version(0, 0, 0)
    return parsed.major, parsed.minor


def _bastion_errors(spec: Object, path: str) -> Iterator[FieldError]:
    types = {text(each.get("name")): each for each in mappings(spec.get("machineTypes"))}
    machine_type = text(at(spec, "bastion", "machineType", "name"))
    if machine_type and machine_type not in types:
        yield invalid(f"{path}.machineType.name", machine_type, "machine type not found in spec.machineTypes")
    wanted = mapping_at(spec, "bastion", "machineImage")
    name, version = text(wanted.get("name")), text(wanted.get("version"))
    found = {key: each for key, each in image_versions(spec).items() if key[0] == name}
    architecture = text(mapping(types.get(machine_type)).get("architecture"))
    if name and not found:
        yield invalid(f"{path}.machineImage.name", name, "image name not found in spec.machineImages")
    elif version and (name, version) not in found:
        yield invalid(f"{path}.machineImage.version", version, "image version not found in spec.machineImages")
    elif name and not any(_runs(found[key], architecture) for key in found if version in {"", key[1]}):
        field = "version" if version else "name"
        needed = f' for architecture "{architecture}"' if architecture else ""
        yield invalid(
            f"{path}.machineImage.{field}", version or name, f"no supported version of the image{needed} found"
        )


def _runs(version: Object, architecture: str) -> bool:
    return is_supported(version) and (not architecture or architecture in texts(version.get("architectures")))


# --- a project's own profile


def merged(parent: Object, spec: Object) -> Object:
    """Offer to Shoots: the spec of the parent with the changes of a NamespacedCloudProfile's spec.

    Shares unchanged parts. Lists have the parent's order, and additions after it.
    """
    result = dict(parent)
    if "kubernetes" in spec:
        result["kubernetes"] = _with_dates(mapping(parent.get("kubernetes")), mapping(spec["kubernetes"]))
    overrides = {text(image.get("name")): image for image in mappings(spec.get("machineImages"))}
    result["machineImages"] = [
        _with_dates(image, mapping(overrides.get(text(image.get("name")))))
        for image in mappings(parent.get("machineImages"))
    ]
    for field in ("machineTypes", "volumeTypes"):
        if entries := [*mappings(parent.get(field)), *mappings(spec.get(field))]:
            result[field] = list({text(entry.get("name")): entry for entry in entries}.values())
    if bundle := text(spec.get("caBundle")):
        first = text(parent.get("caBundle"))
        result["caBundle"] = f"{first}\n{bundle}" if first and not first.endswith("\n") else first + bundle
    return result


def _with_dates(holder: Object, override: Object) -> Object:
    """The holder with the expiration dates of the override; versions that only the override has are ignored."""
    dates = {text(each.get("version")): each.get("expirationDate") for each in mappings(override.get("versions"))}
    versions = [_with_date(each, dates) for each in mappings(holder.get("versions"))]
    return {**holder, "versions": versions} if dates else holder


def _with_date(version: Object, dates: dict[str, object]) -> Object:
    date = dates.get(text(version.get("version")))
    return version if date is None else {**version, "expirationDate": date}
