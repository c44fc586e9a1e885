"""Parts of programs that start and stop in order; see `process.runner` for what a component is."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from kube.runtime.election import LeaderElector
from process.caches import fill
from process.clusters import Clusters, distinct


class Sessions:
    """The HTTP sessions to API servers; they open when first used and close last."""

    name = "sessions"

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters

    async def start(self) -> None:
        pass

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        await self._clusters.close_all()


class Metrics:
    """Computes metrics when they are scraped, while the program runs."""

    name = "metrics"

    def __init__(self, collectors: Sequence[Collector], *, registry: CollectorRegistry = REGISTRY) -> None:
        self._collectors = collectors
        self._registry = registry

    async def start(self) -> None:
        for collector in self._collectors:
            self._registry.register(collector)

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        for collector in self._collectors:
            self._registry.unregister(collector)


class CacheUser(Protocol):
    """Holds stores of clusters while the process runs."""

    async def start(self) -> None:
        """Acquires stores; may wait for those that are not needed at the start."""

    async def close(self) -> None:
        """Gives the stores back."""


class ReadyCaches:
    """The caches that every replica holds: those that are filling already, and those of the users."""

    name = "caches"

    def __init__(self, clusters: Clusters, *, timeout: float, users: Sequence[CacheUser] = ()) -> None:
        self._clusters = clusters
        self._timeout = timeout
        self._users = users

    async def start(self) -> None:
        await fill(self._start_users(), self._clusters, timeout=self._timeout)

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        for user in self._users:
            await user.close()
        for cluster in distinct(self._clusters).values():
            await cluster.caches.close()

    async def _start_users(self) -> None:
        for user in self._users:
            await user.start()


class Events:
    """They are written while their cluster is connected; what is queued at the end gets a moment."""

    name = "events"

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters

    async def start(self) -> None:
        pass

    async def wait(self) -> None:
        pass

    async def stop(self) -> None:
        await self._clusters.drain()


class Election:
    """Is started once this process leads; losing the lead is its failure."""

    name = "leader election"

    def __init__(self, elector: LeaderElector) -> None:
        self._elector = elector
        self._leads = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._running = asyncio.create_task(self._elector.run(self._lead), name="leader election")
        leads = asyncio.create_task(self._leads.wait())
        try:
            await asyncio.wait((self._running, leads), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leads.cancel()
        if self._running.done():
            self._running.result()

    async def wait(self) -> None:
        await _ended(self._running)

    async def stop(self) -> None:
        """Gives the lease up; whatever acts in its name has stopped before."""
        if self._running is not None:
            await cancelled(self._running)

    async def _lead(self) -> None:
        self._leads.set()
        await asyncio.Event().wait()


async def _ended(task: asyncio.Task[None] | None) -> None:
    """Returns or raises as the task does, but cancelling this does not cancel the task."""
    if task is not None:
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()


async def cancelled(*tasks: asyncio.Task[None]) -> None:
    """Ends tasks; their errors belong to the code that waits for them."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
