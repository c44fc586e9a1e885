"""What a Shoot with workers asks its provider for: networks, what controls them, and the Secret with which it may."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.gardenlet.components.parts import made
from gardener import keys
from gardener.api.extensions import CONTROL_PLANES, INFRASTRUCTURES, NETWORKS
from kube.objects import Object, key, mapping, spec, text, texts
from kube.paths import at
from kube.resources import SECRETS

SECRET = "cloudprovider"
_IP_FAMILIES = ["IPv4"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes: namespace: of the Shoot, in the seed."""

    namespace: str
    shoot: Object

    @property
    def name(self) -> str:
        return key(self.shoot).name

    @property
    def type(self) -> str:
        return text(at(spec(self.shoot), "provider", "type"))

    @property
    def region(self) -> str:
        return text(spec(self.shoot).get("region"))

    def common(self, config: str) -> Object:
        """Args: config: the field of `spec.provider` with what only the provider understands."""
        found: Object = {
            "type": self.type,
            "region": self.region,
            "secretRef": {"name": SECRET, "namespace": self.namespace},
        }
        given = at(spec(self.shoot), "provider", config)
        return found if given is None else {**found, "providerConfig": given}


def credentials(namespace: str, data: Mapping[str, str]) -> Object:
    """Args: data: of the Secret in the garden."""
    labels = {keys.NAMESPACE_PURPOSE: SECRET}
    return made(SECRETS, SECRET, namespace=namespace, labels=labels, type="Opaque", data=dict(data))


def infrastructure(values: Values, *, ssh_key: str) -> Object:
    """Args: ssh_key: the public one, base64; empty: there is no SSH."""
    wanted = values.common("infrastructureConfig") | ({"sshPublicKey": ssh_key} if ssh_key else {})
    return made(INFRASTRUCTURES, values.name, namespace=values.namespace, spec=wanted)


def control_plane(values: Values, *, status: Any) -> Object:
    """Args: status: `providerStatus` of the Infrastructure; None: it has none."""
    wanted = {**values.common("controlPlaneConfig"), "purpose": "normal"}
    if status is not None:
        wanted["infrastructureProviderStatus"] = status
    return made(CONTROL_PLANES, values.name, namespace=values.namespace, spec=wanted)


def network(values: Values, *, pods: str, services: str) -> Object:
    asked = mapping(spec(values.shoot).get("networking"))
    wanted: Object = {
        "type": text(asked.get("type")),
        "podCIDR": pods,
        "serviceCIDR": services,
        "ipFamilies": texts(asked.get("ipFamilies")) or _IP_FAMILIES,
    }
    if asked.get("providerConfig") is not None:
        wanted["providerConfig"] = asked["providerConfig"]
    return made(NETWORKS, values.name, namespace=values.namespace, spec=wanted)
