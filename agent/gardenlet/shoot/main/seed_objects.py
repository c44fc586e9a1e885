"""State of the seed before an operation, read from its API server."""

from components import kube_apiserver
from kube.objects import Key, is_deleting
from kube.resources import DEPLOYMENTS, NAMESPACES
from kube.runtime.client import Client


async def lives(seed: Client, namespace: str) -> bool:
    """Whether a namespace exists and is not being deleted."""
    live = await seed.find(NAMESPACES, namespace)
    return live is not None and not is_deleting(live)


async def has_api_server(seed: Client, namespace: str) -> bool:
    """Whether the API server exists; only then the Shoot's cluster has objects to clean up."""
    return await seed.find(DEPLOYMENTS, Key(namespace, kube_apiserver.NAME)) is not None
