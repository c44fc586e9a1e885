"""What a CloudProfile must be, and what stays in it as long as it is used."""

from collections.abc import Iterator

from gardener.garden import profiles
from kube.objects import Key, key
from kube.objects import spec as spec_of
from webhooks.garden.common import profile_usage
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write


def spec_errors(write: Write) -> Iterator[Finding]:
    yield from profiles.spec_errors(write.spec, "spec")


def versions_in_use(write: Write) -> Iterator[Finding]:
    """For `changes`: a version that a Shoot has, or whose expiration a project changes, is not removed."""
    if write.is_deleting:
        return
    gone = profiles.kubernetes_versions(write.old_spec).keys() - profiles.kubernetes_versions(write.spec).keys()
    images = profiles.image_versions(write.old_spec).keys() - profiles.image_versions(write.spec).keys()
    if not gone and not images:
        return
    profile = f'CloudProfile "{write.name}"'
    shoots = profile_usage.shoots_below(write.garden, Key("", write.name))
    yield from profile_usage.used_by_shoots(shoots, profile, gone, images)
    for child in profile_usage.children(write.garden, Key("", write.name)):
        user = f"NamespacedCloudProfile '{key(child)}'"
        for version in sorted(gone & profiles.kubernetes_versions(spec_of(child)).keys()):
            yield profile_usage.kubernetes_in_use(version, profile, user)
        for image in sorted(images & profiles.image_versions(spec_of(child)).keys()):
            yield profile_usage.image_in_use(image, profile, user)
