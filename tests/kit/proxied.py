"""A way to the API server on which things go wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from devcluster.cluster import Cluster
from devcluster.testing.proxy import FaultProxy
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport
from kube.runtime.watch import Timings

QUICK = Timings(server_timeout=5, idle_timeout=2, list_timeout=2, first_back_off=0.02, longest_back_off=0.3)
"""Of watches, so that silence does not take minutes each time."""
_ANSWER_SECONDS = 2.0


class ImpatientClient(Client):
    """Gives requests up early, as `QUICK` does with watches."""

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        return await super().request(method, path, **{**options, "timeout": _ANSWER_SECONDS})


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
