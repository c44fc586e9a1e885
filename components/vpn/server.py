"""The end of the tunnel in the seed, with a proxy that forwards the API server's CONNECT requests to the cluster."""

from components.component import OF_DEPLOYMENT, Component
from components.inputs import Inputs
from components.manifest import manifest, without
from components.results import INFRASTRUCTURE
from components.secrets import tables
from components.secrets.configs import Config
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from gardener.references import stamp
from kube.objects import Object

NAME = "vpn-seed-server"


def _objects(inputs: Inputs) -> list[Object]:
    networks = inputs.networks
    found = manifest(
        __file__,
        "server.yaml",
        image=inputs.image(NAME),
        envoy_image=inputs.image("envoy"),
        namespace=inputs.namespace,
        replicas=inputs.running.replicas(1),
        services=networks.services,
        pods=networks.pods,
        nodes=networks.nodes,
        ca=inputs.secrets.bundle(tables.CA_VPN.name).name,
        certificate=inputs.secrets.current(NAME).name,
        tunnel_key=inputs.secrets.current(tables.TUNNEL_KEY.name).name,
    )
    return stamp(found if inputs.autoscaled else without(found, VERTICAL_POD_AUTOSCALERS.kind))


def _secrets(plane: tables.ControlPlane) -> list[Config]:
    names = tables.service_names(NAME, plane.namespace)
    return [
        tables.TUNNEL_KEY,
        tables.server(NAME, NAME, tables.CA_VPN, names),
        # Client certificate of the API server, which uses the proxy.
        tables.client("kube-apiserver-http-proxy", "kube-apiserver-http-proxy", tables.CA_VPN),
    ]


COMPONENT = Component(
    name=NAME,
    title=NAME,
    objects=_objects,
    secrets=_secrets,
    results=[INFRASTRUCTURE],
    has_bundles=True,
    readiness=OF_DEPLOYMENT,
    after=["secrets", "namespace", "infrastructure-ready", "api-server-ready"],
    is_left_asleep=False,
)
