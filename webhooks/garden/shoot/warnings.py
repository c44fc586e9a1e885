"""What users of a Shoot are told: deprecated fields, versions that have expired or soon will."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from kube.objects import text
from kube.paths import at
from webhooks.garden.common.write import Write
from webhooks.garden.shoot.parts import VERSION, pools_of
from webhooks.garden.shoot.profile import Offer, own_offer

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
    offer = own_offer(write)
    if offer is None or not (offer.version_ends or offer.image_ends):
        return
    soon = write.now + _SOON
    for path, version, date in _ends(write, offer):
        if date is not None and date <= soon:
            yield f"{path}: version {version} expires on {date:%Y-%m-%d}"


def _ends(write: Write, offer: Offer) -> Iterator[tuple[str, str, datetime | None]]:
    version = text(at(write.spec, "kubernetes", "version"))
    yield VERSION, version, offer.version_ends.get(version)
    for pool in pools_of(write):
        if offer.version_ends:
            version = text(pool.kubernetes.get("version"))
            yield f"{pool.path}.kubernetes.version", version, offer.version_ends.get(version)
        if offer.image_ends:
            name, version = text(pool.image.get("name")), text(pool.image.get("version"))
            yield f"{pool.path}.machine.image.version", version, offer.image_ends.get((name, version))
