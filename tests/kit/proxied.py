"""A way to the API server on which things go wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from devcluster.cluster import Cluster
from devcluster.proxy import FaultProxy
from kube.connection import load_kubeconfig
from kube.transport import Transport


def proxy_to(cluster: Cluster, *, seed: int = 0) -> FaultProxy:
    """To be entered."""
    return FaultProxy(upstream=cluster.url, upstream_ca=cluster.ca, authority=cluster.authority, seed=seed)


@asynccontextmanager
async def proxied(cluster: Cluster, directory: Path, *, seed: int = 0) -> AsyncIterator[tuple[FaultProxy, Transport]]:
    """A proxy, and a connection through it; its kubeconfig goes into the directory."""
    async with proxy_to(cluster, seed=seed) as proxy:
        proxy.write_kubeconfig(directory / "kubeconfig", token=cluster.token)
        async with Transport(load_kubeconfig(directory / "kubeconfig")) as transport:
            yield proxy, transport
