"""CloudProfiles: offers of an infrastructure, and their users."""

from collections.abc import Callable, Iterator
from datetime import datetime

from gardener.api.garden import NAMESPACED_CLOUD_PROFILES, SHOOTS
from gardener.api.garden.cloud_profile import CLOUD_PROFILE as DEFINITION
from gardener.garden import profiles
from kube.clock import utc_now
from kube.objects import Key, key, text
from kube.objects import spec as spec_of
from webhooks.garden.common import profile_usage
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.common.extensions import PROVIDER, set_extension_labels
from webhooks.garden.common.findings import Finding
from webhooks.garden.common.write import Write


def drop_expired(write: Write, *, now: Callable[[], datetime] = utc_now) -> None:
    """Drop expired versions from a new profile."""
    if write.is_create:
        profiles.drop_expired(write.spec, now())


def label_provider(write: Write) -> None:
    set_extension_labels(write.new, [PROVIDER + text(write.spec.get("type"))])


def spec_errors(write: Write) -> Iterator[Finding]:
    yield from profiles.spec_errors(write.spec, "spec")


def versions_in_use(write: Write) -> Iterator[Finding]:
    """Rule for `changes`: versions that a Shoot has, or whose expiration a project changes, are not removed."""
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


CLOUD_PROFILE = Kind(
    definition=DEFINITION,
    defaults=(drop_expired, label_provider),
    checks=(spec_errors,),
    changes=(versions_in_use,),
    reads=(NAMESPACED_CLOUD_PROFILES, SHOOTS),
)
