"""Provider objects of a Shoot with workers: infrastructure, control plane, network, and the Secret with credentials."""

from collections.abc import Mapping

from components.inputs import Inputs
from components.parts import made
from gardener import keys
from gardener.api.extensions import CONTROL_PLANES, INFRASTRUCTURES, NETWORKS
from kube.objects import Object, key, mapping, spec, text, texts
from kube.paths import at
from kube.resources import SECRETS

SECRET = "cloudprovider"
_IP_FAMILIES = ["IPv4"]


def _common(inputs: Inputs, config: str) -> Object:
    """Args: config: field of `spec.provider` whose content only the provider interprets."""
    found: Object = {
        "type": text(at(spec(inputs.shoot), "provider", "type")),
        "region": text(spec(inputs.shoot).get("region")),
        "secretRef": {"name": SECRET, "namespace": inputs.namespace},
    }
    given = at(spec(inputs.shoot), "provider", config)
    return found if given is None else {**found, "providerConfig": given}


def credentials(namespace: str, data: Mapping[str, str]) -> Object:
    """Args: data: of the Secret in the garden."""
    labels = {keys.NAMESPACE_PURPOSE: SECRET}
    return made(SECRETS, SECRET, namespace=namespace, labels=labels, type="Opaque", data=dict(data))


def infrastructure(inputs: Inputs, *, ssh_key: str) -> Object:
    """Args: ssh_key: the public one, base64; empty if SSH is disabled."""
    wanted = _common(inputs, "infrastructureConfig") | ({"sshPublicKey": ssh_key} if ssh_key else {})
    return made(INFRASTRUCTURES, key(inputs.shoot).name, namespace=inputs.namespace, spec=wanted)


def control_plane(inputs: Inputs) -> Object:
    wanted = {**_common(inputs, "controlPlaneConfig"), "purpose": "normal"}
    if (status := inputs.provider_status) is not None:
        wanted["infrastructureProviderStatus"] = status
    return made(CONTROL_PLANES, key(inputs.shoot).name, namespace=inputs.namespace, spec=wanted)


def network(inputs: Inputs) -> Object:
    """Return the Network.

    Raises:
        InputError: a network is not set.
    """
    requested = mapping(spec(inputs.shoot).get("networking"))
    wanted: Object = {
        "type": text(requested.get("type")),
        "podCIDR": inputs.pod_network,
        "serviceCIDR": inputs.service_network,
        "ipFamilies": texts(requested.get("ipFamilies")) or _IP_FAMILIES,
    }
    if requested.get("providerConfig") is not None:
        wanted["providerConfig"] = requested["providerConfig"]
    return made(NETWORKS, key(inputs.shoot).name, namespace=inputs.namespace, spec=wanted)
