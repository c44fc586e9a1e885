"""Parts that both programs start first and stop last; see `process.runner` for what a component is."""

import asyncio
from collections.abc import Iterable, Mapping

from kube.client import Transport
from process.caches import fill
from process.clusters import Cluster


class Sessions:
    """The HTTP sessions to API servers; they open when first used and close last."""

    name = "sessions"

    def __init__(self, transports: Iterable[Transport]) -> None:
        self._transports = transports

    async def start(self) -> None:
        pass

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        for transport in self._transports:
            await transport.close()


class ReadyCaches:
    """The caches that every replica holds; they began to fill when they were made."""

    name = "caches"

    def __init__(self, clusters: Mapping[str, Cluster], *, timeout: float) -> None:
        self._clusters = clusters
        self._timeout = timeout

    async def start(self) -> None:
        await fill(asyncio.sleep(0), self._clusters, timeout=self._timeout)

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        for cluster in self._clusters.values():
            await cluster.caches.close()
