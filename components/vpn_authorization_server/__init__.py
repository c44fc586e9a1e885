"""Authorization of tunnels to Shoots: the ingress gateway consults this server for each of them."""

from components.manifest import manifest
from components.seed_component import SeedComponent, SeedInputs
from gardener.api.seed_definitions import Stage
from kube.objects import Object

NAME = "reversed-vpn-auth-server"


def _objects(inputs: SeedInputs) -> list[Object]:
    """Objects written by the gardenlet itself, for seeds in which Istio serves the gateways."""
    return manifest(__file__, image=inputs.images.vpn_authorization_server)


COMPONENT = SeedComponent(
    name="vpn-authorization-server",
    title="VPN authorization server",
    images=["vpn_authorization_server"],
    objects=_objects,
    needs=[Stage.ISTIO],
    after=["istio"],
)
