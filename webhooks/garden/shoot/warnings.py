"""What users of a Shoot are told: deprecated fields, versions that have expired or soon will."""

from collections.abc import Iterator
from datetime import timedelta

from gardener.garden.profiles import expiration, image_versions, kubernetes_versions
from kube.objects import Object, text
from kube.paths import at
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.parts import VERSION, image_of, own_version, pools_of
from webhooks.garden.shoot.profile import profile_of

_SOON = timedelta(days=14)


def deprecated(write: Write) -> Iterator[str]:
    """For `deprecations`."""
    if write.spec.get("cloudProfileName") and not write.spec.get("cloudProfile"):
        yield "spec.cloudProfileName is deprecated: use spec.cloudProfile"
    if write.spec.get("secretBindingName") and write.changed("spec", "secretBindingName"):
        yield "spec.secretBindingName is deprecated: use spec.credentialsBindingName"
    if at(write.spec, "kubernetes", "enableStaticTokenKubeconfig") is True:
        yield "spec.kubernetes.enableStaticTokenKubeconfig is deprecated: ask for kubeconfigs that expire"


def expired(write: Write) -> Iterator[str]:
    """For `warnings`: versions that expire are replaced in the maintenance time window."""
    if not write.spec_is_changed:
        return
    for path, version, entry in _chosen(write, profile_of(write, write.spec) or {}):
        date = expiration(entry)
        if date is not None and date <= write.now + _SOON:
            yield f"{path}: version {version} expires on {date:%Y-%m-%d}"


def _chosen(write: Write, profile: Object) -> Iterator[tuple[str, str, Object]]:
    """Field, version, and what the profile says about it."""
    versions, images = kubernetes_versions(profile), image_versions(profile)
    version = text(at(write.spec, "kubernetes", "version"))
    yield VERSION, version, versions.get(version, {})
    for pool in pools_of(write):
        version = own_version(pool.worker)
        yield f"{pool.path}.kubernetes.version", version, versions.get(version, {})
        image = image_of(pool.worker)
        name, version = text(image.get("name")), text(image.get("version"))
        yield f"{pool.path}.machine.image.version", version, images.get((name, version), {})
