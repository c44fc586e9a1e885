"""Connections to the cluster of a Shoot as administrator, by the gardenlet's kubeconfig in the Shoot's namespace."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gardener.api.extensions import CLUSTERS
from kube.objects import Key, Object, integer, is_deleting, string_map, text
from kube.paths import at, mapping_at
from kube.resources import DEPLOYMENTS, SECRETS
from kube.runtime.client import Client
from kube.runtime.connection import connection_of_kubeconfig
from kube.runtime.controller import ReconcileError
from kube.runtime.kubeconfig import ConfigurationError
from kube.runtime.transport import Transport
from localprocesses.components import APISERVER

_KUBECONFIG = "gardener"
_USER_AGENT = "local-provider"


async def runs(seed: Client, namespace: str) -> bool:
    """Whether the API server is expected to run, so that there may be Nodes."""
    found = await seed.find(DEPLOYMENTS, Key(namespace, APISERVER))
    return found is not None and not is_deleting(found) and integer(at(found, "spec", "replicas")) > 0


async def is_asleep(seed: Client, namespace: str) -> bool:
    """Whether the Shoot has to be hibernated."""
    return at(await _spec(seed, namespace), "hibernation", "enabled") is True


async def network_of_nodes(seed: Client, namespace: str) -> str:
    """Return the network that the Shoot requests; empty if its provider may choose."""
    return text(at(await _spec(seed, namespace), "networking", "nodes"))


async def _spec(seed: Client, namespace: str) -> Object:
    """Return the spec of the Shoot as extensions see it."""
    cluster: Object = await seed.find(CLUSTERS, namespace) or {}
    return mapping_at(cluster, "spec", "shoot", "spec")


async def kubeconfig(seed: Client, namespace: str) -> bytes:
    """Return the kubeconfig with a token, which is renewed; empty if there is none yet."""
    secret = await seed.find(SECRETS, Key(namespace, _KUBECONFIG)) or {}
    return base64.b64decode(string_map(secret.get("data")).get("kubeconfig", ""))


@asynccontextmanager
async def connected(seed: Client, namespace: str) -> AsyncIterator[Client]:
    """Connect to the cluster of a Shoot.

    Raises:
        ReconcileError: there is no kubeconfig yet.
    """
    try:
        content = await kubeconfig(seed, namespace)
        connection = connection_of_kubeconfig(content, origin=f"of Secret {namespace}/{_KUBECONFIG}")
    except (ConfigurationError, ValueError) as error:
        raise ReconcileError(f"the cluster of {namespace} can't be reached yet: {error}") from error
    async with Transport(connection) as transport:
        yield Client(transport, user_agent=_USER_AGENT)
