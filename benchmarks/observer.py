"""Follows ManagedResources and ConfigMaps by watches, and waits until something holds."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from gardener.kinds import MANAGED_RESOURCES
from kube.cache import Caches, Change, View
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.objects import Object, condition, key, resource_version
from kube.resources import CONFIG_MAPS

_NO_NEWS_SECONDS = 5.0
"""After so long it is looked all the same: what is waited for may have raised an error meanwhile."""


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

    def __init__(self, client: Client, caches: Caches, *, objects: bool) -> None:
        self.client = client
        self._managed = caches.acquire(View(MANAGED_RESOURCES, _state))
        self._config_maps = caches.acquire(View(CONFIG_MAPS, _version)) if objects else None
        self._news = asyncio.Event()
        self._managed.subscribe(self._changed)
        if self._config_maps is not None:
            self._config_maps.subscribe(self._changed)

    async def synced(self) -> None:
        await self._managed.synced.wait()
        if self._config_maps is not None:
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

    def is_put_right(self, drifted: Object, version: str) -> bool:
        """Whether a ConfigMap was changed again since it was as given, and is of this version now."""
        if self._config_maps is None:
            return False
        known = self._config_maps.version(key(drifted)), self._config_maps.get(key(drifted))
        return known[0] > resource_version(drifted) and known[1] == version

    async def until(self, holds: Callable[[], bool], *, what: str, within: float = 600.0, pause: float = 0.0) -> float:
        """Returns the moment; DevclusterError if it never comes.

        There are at least `pause` seconds between two looks at it, for where it takes long to find out.
        """
        try:
            async with asyncio.timeout(within):
                while not holds():
                    self._news.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), _NO_NEWS_SECONDS)
                    await asyncio.sleep(pause)
        except TimeoutError:
            raise DevclusterError(f"waited {within:.0f} s in vain for {what}") from None
        return time.monotonic()

    def _changed(self, _: Change[State] | Change[str]) -> None:
        self._news.set()


@asynccontextmanager
async def observing(cluster: Cluster, *namespaces: str, objects: bool = True) -> AsyncIterator[Observer]:
    """Args: objects: whether ConfigMaps are followed, too."""
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        caches = Caches(client, namespaces=namespaces)
        try:
            observer = Observer(client, caches, objects=objects)
            await observer.synced()
            yield observer
        finally:
            await caches.close()
