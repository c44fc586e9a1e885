"""Follows ManagedResources and ConfigMaps by watches, and waits until something holds."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.api import MANAGED_RESOURCES
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from kube.cache import Caches, Change, View
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.objects import Object, condition
from kube.resources import CONFIG_MAPS


@dataclass(frozen=True, slots=True)
class State:
    """What is kept of a ManagedResource."""

    applied: bool
    checksum: str
    listed: int


def _state(obj: Object) -> State:
    status = obj.get("status") or {}
    return State(
        applied=(condition(obj, "ResourcesApplied") or {}).get("status") == "True",
        checksum=status.get("secretsDataChecksum") or "",
        listed=len(status.get("resources") or []),
    )


def _version(obj: Object) -> str:
    return str((obj.get("data") or {}).get("version") or "")


class Observer:
    """Made by `observing`."""

    def __init__(self, client: Client, caches: Caches) -> None:
        self.client = client
        self._managed = caches.acquire(View(MANAGED_RESOURCES, _state))
        self._config_maps = caches.acquire(View(CONFIG_MAPS, _version))
        self._news = asyncio.Event()
        self._managed.subscribe(self._changed)
        self._config_maps.subscribe(self._changed)

    async def synced(self) -> None:
        await self._managed.synced.wait()
        await self._config_maps.synced.wait()

    def checksums(self) -> dict[str, str]:
        return {name.name: state.checksum for name, state in self._managed.items()}

    def applied(self, size: int, *, other_than: dict[str, str] | None = None) -> int:
        """How many are applied completely, with another checksum than that."""
        before = other_than or {}
        return sum(
            state.applied and state.listed == size and state.checksum != before.get(name.name)
            for name, state in self._managed.items()
        )

    def managed(self) -> int:
        return len(self._managed)

    def versions(self) -> dict[str, str]:
        """Of ConfigMaps."""
        return {name.name: version for name, version in self._config_maps.items()}

    async def until(self, holds: Callable[[], bool], *, what: str, within: float = 600.0) -> float:
        """Returns the moment; DevclusterError if it never comes."""
        try:
            async with asyncio.timeout(within):
                while not holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise DevclusterError(f"waited {within:.0f} s in vain for {what}") from None
        return time.monotonic()

    def _changed(self, _: Change[State] | Change[str]) -> None:
        self._news.set()


@asynccontextmanager
async def observing(cluster: Cluster, namespace: str) -> AsyncIterator[Observer]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        caches = Caches(client, namespaces=[namespace])
        try:
            observer = Observer(client, caches)
            await observer.synced()
            yield observer
        finally:
            await caches.close()
