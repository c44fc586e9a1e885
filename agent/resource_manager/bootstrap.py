"""What is looked at once, before controllers start: the identity of the source cluster, and whether it serves the kind.

The identity is determined by the leader. It becomes part of the origin that applied objects carry, so guessing it wrong
would orphan them: where it has to be known and is not, the process ends. Where the cluster does not serve
ManagedResources, there is nothing to do until it does; what is said then is how to define them.
"""

from gardener.api.kinds import DEFINITION, MANAGED_RESOURCES
from kube.errors import KindNotServed, KubeError
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from process.logging import get_logger

FROM_CLUSTER = "<cluster>"
FROM_CLUSTER_IF_THERE = "<default>"

_NAMESPACE = "kube-system"
_NAME = "cluster-identity"
_KEY = "cluster-identity"


class BootstrapError(Exception):
    """The process can't begin to lead."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"failed during bootstrapping: unable to determine cluster id: {cause}")


def must_be_read(configured: str) -> bool:
    """Whether the identity is in the cluster and not in the configuration."""
    return configured in {FROM_CLUSTER, FROM_CLUSTER_IF_THERE}


def identity_in(config_map: Object | None, *, configured: str) -> str:
    """The identity that a ConfigMap holds; None stands for a ConfigMap that does not exist.

    Raises:
        BootstrapError: there is none, though the configuration says so.
    """
    identity = ((config_map or {}).get("data") or {}).get(_KEY)
    if identity is not None:
        return str(identity)
    if configured == FROM_CLUSTER_IF_THERE:
        return ""
    reason = f'configmaps "{_NAME}" not found' if config_map is None else f"no {_KEY} entry"
    raise _unreadable(reason)


async def cluster_identity(configured: str, client: Client) -> str:
    """The identity of the source cluster, with at most one request. Raises BootstrapError."""
    log = get_logger()
    identity = configured
    if must_be_read(configured):
        log.info("Trying to get cluster id from cluster")
        identity = identity_in(await _config_map(client), configured=configured)
    log.info("Using cluster id", clusterID=identity)
    return identity


async def _config_map(client: Client) -> Object | None:
    try:
        return await client.find(CONFIG_MAPS, Key(_NAMESPACE, _NAME))
    except KubeError as error:
        raise _unreadable(str(error)) from error


def _unreadable(reason: str) -> BootstrapError:
    return BootstrapError(f"cannot determine cluster identity from configmap: {reason}")


class DefinitionCheck:
    """Looks once. That the kind comes is noticed by its watch.

    Args: discovery: of the source cluster.
    """

    name = "definition of ManagedResources"

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery

    async def start(self) -> None:
        try:
            await self._discovery.find(MANAGED_RESOURCES.api_version, MANAGED_RESOURCES.kind)
        except KindNotServed:
            get_logger().error(
                "The source cluster does not serve ManagedResources; waiting for their CustomResourceDefinition",
                install=f"kubectl apply --server-side -f {DEFINITION}",
            )
        except KubeError:
            pass  # the watch reports it

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        pass
