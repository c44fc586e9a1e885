"""The identity of the source cluster, which is determined once, by the leader, before controllers start.

It becomes part of the origin that applied objects carry, so guessing it wrong would orphan them: where it has to be
known and is not, the process ends.
"""

from kube.errors import KubeError
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client
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
        return await client.find(CONFIG_MAPS, _NAME, namespace=_NAMESPACE)
    except KubeError as error:
        raise _unreadable(str(error)) from error


def _unreadable(reason: str) -> BootstrapError:
    return BootstrapError(f"cannot determine cluster identity from configmap: {reason}")
