"""Namespace of an extension in the seed."""

from collections.abc import Sequence

from gardener import keys
from gardener.garden.extensions import namespace_of_installation
from kube.apply.shared_objects import missing_metadata
from kube.objects import Object, annotations, is_deleting, key, labels
from kube.resources import NAMESPACES

ENFORCED = "pod-security.kubernetes.io/enforce"


def desired(installation: Object, *, registration: str, zones: Sequence[str], is_garden: bool) -> Object:
    """Return the namespace; `is_garden` states whether the seed runs the garden, so that policies can target its API
    server.
    """
    own = {
        keys.ROLE: keys.ROLE_EXTENSION,
        keys.CONTROLLER_REGISTRATION_NAME: registration,
        keys.HIGH_AVAILABILITY_CONSIDER: "true",
    }
    if level := annotations(installation).get(keys.POD_SECURITY_ENFORCE):
        own[ENFORCED] = level
    if is_garden:
        own[keys.ACCESS_TARGET_API_SERVER] = "allowed"
    notes = {keys.HIGH_AVAILABILITY_ZONES: ",".join(zones)}
    name = namespace_of_installation(key(installation).name)
    return {**NAMESPACES.type_meta, "metadata": {"name": name, "labels": own, "annotations": notes}}


def patch(wanted: Object, live: Object) -> Object | None:
    """Patch with missing metadata, and without an obsolete pod security label; None if nothing differs, or it goes."""
    if is_deleting(live):
        return None
    found = missing_metadata(wanted, live)
    if ENFORCED in labels(live) and ENFORCED not in labels(wanted):
        found = found or {"metadata": {}}
        found["metadata"]["labels"] = {**found["metadata"].get("labels", {}), ENFORCED: None}
    return found
