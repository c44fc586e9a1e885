"""A proxy on each node, through which pods reach the API server at the address of its Service.

It forwards connections to the ingress gateway of the seed, preceded by their original destination. Everyone can reach
its listener for metrics and readiness, which therefore has strict limits.
"""

from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.manifest import manifest
from components.results import CLUSTER_IP
from gardener.references import stamp
from kube.objects import Object

NAME = "apiserver-proxy"


def _contents(inputs: Inputs) -> list[Object]:
    found = manifest(
        __file__,
        image=inputs.image(NAME),
        envoy_image=inputs.image("envoy"),
        host=inputs.host_in_pods,
        cluster_ip=inputs.cluster_ip,
    )
    return stamp(found)


COMPONENT = Component(name=NAME, title=NAME, contents=_contents, results=[CLUSTER_IP], after=[*ON_NODES, "identity"])
