"""What there is in the seed before an operation begins, asked of its API server."""

from agent.gardenlet.components import kube_apiserver
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from kube.errors import KindNotServed
from kube.objects import is_deleting
from kube.resources import DEPLOYMENTS, NAMESPACES
from kube.runtime.client import Client
from process.clusters import Cluster


async def lives(seed: Client, namespace: str) -> bool:
    """Whether a namespace exists, and does not go. Raises KubeError."""
    live = await seed.find(NAMESPACES, namespace)
    return live is not None and not is_deleting(live)


async def has_api_server(seed: Client, namespace: str) -> bool:
    """Only then there is anything in the Shoot's cluster that has to be removed. Raises KubeError."""
    return await seed.find(DEPLOYMENTS, kube_apiserver.NAME, namespace=namespace) is not None


async def is_autoscaled(seed: Cluster) -> bool:
    """Whether it has VerticalPodAutoscalers. Raises KubeError."""
    try:
        await seed.discovery.find(VERTICAL_POD_AUTOSCALERS.api_version, VERTICAL_POD_AUTOSCALERS.kind)
    except KindNotServed:
        return False
    return True
