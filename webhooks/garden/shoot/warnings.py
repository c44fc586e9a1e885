"""What users of a Shoot are told: deprecated fields, versions that have expired or soon will."""

from collections.abc import Iterator
from datetime import timedelta

from gardener.garden.profiles import expiration
from kube.objects import mapping, text
from kube.paths import at
from webhooks.garden.shoot.parts import VERSION, pools_of
from webhooks.garden.shoot.profile import offer_of, profile_of
from webhooks.garden.write import Write

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
    if not write.changed("spec"):
        return
    profile = profile_of(write, write.spec)
    if profile is None:
        return
    offer = offer_of(profile)
    versions, images = offer.versions, offer.image_versions
    found = [(VERSION, mapping(versions.get(text(at(write.spec, "kubernetes", "version")))))]
    for path, worker in pools_of(write):
        own = text(at(worker, "kubernetes", "version"))
        image = mapping(at(worker, "machine", "image"))
        found.append((f"{path}.kubernetes.version", mapping(versions.get(own))))
        key = text(image.get("name")), text(image.get("version"))
        found.append((f"{path}.machine.image.version", mapping(images.get(key))))
    for path, version in found:
        date = expiration(version)
        if date is not None and date <= write.now + _SOON:
            yield f"{path}: version {text(version.get('version'))} expires on {date:%Y-%m-%d}"
