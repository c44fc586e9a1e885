"""State of the seed before an operation, read from its API server."""

from components import kube_apiserver
from kube.objects import Key, Object, is_deleting
from kube.resources import DEPLOYMENTS, NAMESPACES
from kube.runtime.client import Client


async def living(seed: Client, namespace: str) -> Object | None:
    """A namespace; None if it does not exist, or is being deleted."""
    live = await seed.find(NAMESPACES, namespace)
    return None if live is None or is_deleting(live) else live


async def has_api_server(seed: Client, namespace: str) -> bool:
    """Whether the API server exists; only then the Shoot's cluster has objects to clean up."""
    return await seed.find(DEPLOYMENTS, Key(namespace, kube_apiserver.NAME)) is not None
