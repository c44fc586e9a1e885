"""Gardenlets, which the demo of a garden plays: once, or on a thread of their own until it ends."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterable

from devcluster.cluster import Cluster
from devcluster.garden.gardenlets import Gardenlets
from kube.errors import KubeError
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

_PAUSE_SECONDS = 0.3


def report_once(cluster: Cluster, seed: str) -> None:
    """As the gardenlet of the Seed would. Raises KubeError."""

    async def report() -> None:
        async with _gardenlets(cluster, seed) as gardenlets:
            await gardenlets.work()

    asyncio.run(report())


class Actors:
    """Args: idle: names of Seeds whose gardenlets are not there."""

    def __init__(self, cluster: Cluster, *, idle: Iterable[str] = ()) -> None:
        self._cluster = cluster
        self._idle = set(idle)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._play()), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    async def _play(self) -> None:
        async with _gardenlets(self._cluster) as gardenlets:
            gardenlets.idle |= self._idle
            while not self._is_over.is_set():
                # Whatever could not be done, is still to be done in the next round.
                with contextlib.suppress(KubeError):
                    await gardenlets.renew_leases()
                    await gardenlets.work()
                await asyncio.sleep(_PAUSE_SECONDS)


@contextlib.asynccontextmanager
async def _gardenlets(cluster: Cluster, prefix: str = "") -> AsyncIterator[Gardenlets]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield Gardenlets(Client(transport, user_agent="gardenlets"), prefix)
