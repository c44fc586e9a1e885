"""The CA of the garden's API server: another one is adopted only if it verifies the server.

A wrong one in the kubeconfig would lock this process out. So it is tried first, over a separate connection; a server
that can't be verified is reported, and never trusted.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.gardenlet.bootstrap.rules.kubeconfig import document, with_authority
from agent.gardenlet.bootstrap.stored import Kubeconfig, of_content
from config.gardenlet.schema import GardenClientConnection
from kube.errors import ApiError, KubeError
from kube.runtime.connection import Connection
from kube.runtime.kubeconfig import ConfigurationError
from process.clusters import Cluster, Clusters, Endpoint

_TRIAL = "garden trial"
_ANYBODY_MAY_READ = "/version"


class NotVerified(Exception):
    """The CA does not verify the server, or is invalid."""


@asynccontextmanager
async def opened(
    clusters: Clusters, name: str, connection: Connection, settings: GardenClientConnection
) -> AsyncIterator[Cluster]:
    """Open a connection for the duration of a block."""
    cluster = clusters.open(Endpoint((name,), connection, settings))
    try:
        yield cluster
    finally:
        await clusters.close(name)


async def trusting(
    clusters: Clusters, kubeconfig: Kubeconfig, authority: bytes, settings: GardenClientConnection, *, origin: str
) -> Kubeconfig:
    """Return the same kubeconfig with another CA, after that CA has verified the server.

    `authority` is PEM; empty for the system's CAs.

    Raises:
        NotVerified: the CA does not verify the server.
        KubeError: the server does not respond.
    """
    cluster = with_authority(kubeconfig.cluster, authority)
    content = document(cluster, certificate=kubeconfig.certificate_pem, key=kubeconfig.key)
    try:
        changed = of_content(content, origin=origin)
        async with opened(clusters, _TRIAL, changed.connection, settings) as garden:
            await garden.client.read(_ANYBODY_MAY_READ)
    except ApiError:
        return changed  # the server responded, so it is verified
    except KubeError as error:
        if _is_of_tls(error):
            raise NotVerified(str(error)) from error
        raise
    except ConfigurationError as error:
        raise NotVerified(str(error)) from error
    return changed


def _is_of_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__
    return False
