"""Checks before controllers start: the identity of the source cluster, and whether it serves ManagedResources.

The leader determines the identity. It becomes part of the origin of applied objects, so a wrong guess would orphan
them: the process ends if the identity is required and unknown. While the cluster does not serve ManagedResources, the
process waits, and logs how to define them.
"""

from gardener.api.kinds import DEFINITION, MANAGED_RESOURCES
from kube.errors import KubeError
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
    """The process cannot begin to lead."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"failed during bootstrapping: unable to determine cluster id: {cause}")


def must_be_read(configured: str) -> bool:
    """Whether the identity is read from the cluster instead of the configuration."""
    return configured in {FROM_CLUSTER, FROM_CLUSTER_IF_THERE}


def identity_in(config_map: Object | None, *, configured: str) -> str:
    """Return the identity that a ConfigMap holds; None stands for a ConfigMap that does not exist.

    Raises:
        BootstrapError: the ConfigMap has no identity, and the configuration requires one.
    """
    identity = ((config_map or {}).get("data") or {}).get(_KEY)
    if identity is not None:
        return str(identity)
    if configured == FROM_CLUSTER_IF_THERE:
        return ""
    reason = f'configmaps "{_NAME}" not found' if config_map is None else f"no {_KEY} entry"
    raise _unreadable(reason)


async def cluster_identity(configured: str, client: Client) -> str:
    """Return the identity of the source cluster, with at most one request.

    Raises:
        BootstrapError: the ConfigMap cannot be read, or lacks a required identity.
    """
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
    """Checks once; the watch of ManagedResources notices a later definition.

    Args: discovery: of the source cluster.
    """

    name = "definition of ManagedResources"

    def __init__(self, discovery: Discovery) -> None:
        self._discovery = discovery

    async def start(self) -> None:
        try:
            if not await self._discovery.is_served(MANAGED_RESOURCES):
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
