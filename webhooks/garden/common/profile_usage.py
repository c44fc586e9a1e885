"""Versions of a cloud profile that its Shoots use.

Reads `SHOOTS`, and for profiles below a CloudProfile `NAMESPACED_CLOUD_PROFILES`.
"""

from collections.abc import Collection, Iterable, Iterator

from gardener.api.garden import NAMESPACED_CLOUD_PROFILES, SHOOTS
from gardener.garden import users
from gardener.garden.shoots import workers
from kube.objects import Key, Object, is_deleting, key, spec, text
from kube.paths import at, mapping_at
from webhooks.garden.common.findings import Denial
from webhooks.garden.common.write import GardenLister


def shoots_of(garden: GardenLister, profile: Key) -> Iterator[Object]:
    """Shoots of a NamespacedCloudProfile, or, without namespace, of a CloudProfile, that are not being deleted."""
    index = users.namespaced_cloud_profiles if profile.namespace else users.cloud_profiles
    return (shoot for shoot in garden.by(SHOOTS, index, profile) if not is_deleting(shoot))


def children(garden: GardenLister, profile: Key) -> list[Object]:
    """NamespacedCloudProfiles of a CloudProfile that are not being deleted."""
    return [each for each in garden.by(NAMESPACED_CLOUD_PROFILES, users.parents, profile) if not is_deleting(each)]


def shoots_below(garden: GardenLister, profile: Key) -> Iterator[Object]:
    """Shoots of a CloudProfile and of all its NamespacedCloudProfiles."""
    yield from shoots_of(garden, profile)
    for child in garden.by(NAMESPACED_CLOUD_PROFILES, users.parents, profile):
        yield from shoots_of(garden, key(child))


def used_by_shoots(
    shoots: Iterable[Object], profile: str, versions: Collection[str], images: Collection[tuple[str, str]]
) -> Iterator[Denial]:
    """Reasons why versions of Kubernetes and of machine images (name, version) may not be removed.

    `profile` is its kind and name, for the message.
    """
    for shoot in shoots:
        user = f"shoot '{key(shoot)}'"
        for version in sorted(_kubernetes_versions(shoot).intersection(versions)):
            yield kubernetes_in_use(version, profile, user)
        for pool in workers(spec(shoot)):
            machine_image = mapping_at(pool, "machine", "image")
            image = text(machine_image.get("name")), text(machine_image.get("version"))
            if image in images:
                yield image_in_use(image, profile, f'{user} by worker "{text(pool.get("name"))}"')


def kubernetes_in_use(version: str, profile: str, user: str) -> Denial:
    return _in_use(f'Kubernetes version "{version}"', profile, user)


def image_in_use(image: tuple[str, str], profile: str, user: str) -> Denial:
    return _in_use(f"Machine image version '{'/'.join(image)}'", profile, user)


def _in_use(what: str, profile: str, user: str) -> Denial:
    return Denial(f"unable to delete {what} from {profile} - version is still in use by {user}")


def _kubernetes_versions(shoot: Object) -> set[str]:
    """Kubernetes versions of the control plane and of the pools."""
    pools = (text(at(pool, "kubernetes", "version")) for pool in workers(spec(shoot)))
    return {version for version in (text(at(shoot, "spec", "kubernetes", "version")), *pools) if version}
