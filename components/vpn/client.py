"""The end of the tunnel in the Shoot."""

import base64

from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.manifest import manifest
from components.secrets import tables
from components.secrets.stored import Stored
from components.vpn.server import NAME as SERVER
from gardener.references import stamp
from kube.objects import Object, spec, text
from kube.paths import at

NAME = "vpn-shoot"
_CLIENT = "vpn-shoot-client"
"""Name of its image, and of its certificate."""


def _contents(inputs: Inputs) -> list[Object]:
    found = manifest(
        __file__,
        "client.yaml",
        image=inputs.image(_CLIENT),
        host=inputs.host_in_pods,
        namespace=inputs.namespace,
        seed_pods=text(at(spec(inputs.seed), "networks", "pods")),
        ca=_encoded(inputs.secrets.bundle(tables.CA_VPN.name)),
        client=_encoded(inputs.secrets.current(_CLIENT)),
        tlsauth=_encoded(inputs.secrets.current(tables.TUNNEL_KEY.name)),
    )
    return stamp(found)


def _encoded(secret: Stored) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in secret.data.items()}


COMPONENT = Component(
    name=NAME,
    title=f"{NAME} system component",
    has_bundles=True,
    contents=_contents,
    secrets=lambda _: [tables.client(_CLIENT, _CLIENT, tables.CA_VPN)],
    after=[*ON_NODES, SERVER],
)
