"""Follow ManagedResources and ConfigMaps by watches, and wait until a condition holds."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from benchmarks.measuring import News, connected
from devcluster.cluster import Cluster
from gardener.api.kinds import MANAGED_RESOURCES
from kube.objects import Object, condition, key, resource_version
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Caches, View
from kube.runtime.client import Client


@dataclass(frozen=True, slots=True)
class Progress:
    """Cached fields of a ManagedResource."""

    applied: bool
    checksum: str
    listed: int


def _state(obj: Object) -> Progress:
    status = obj.get("status") or {}
    return Progress(
        applied=(condition(obj, "ResourcesApplied") or {}).get("status") == "True",
        checksum=status.get("secretsDataChecksum") or "",
        listed=len(status.get("resources") or []),
    )


def _version(obj: Object) -> str:
    return str((obj.get("data") or {}).get("version") or "")


class Observer(News):
    """Observer of ManagedResources and ConfigMaps; made by `observing`."""

    def __init__(self, client: Client, caches: Caches, *, objects: bool) -> None:
        super().__init__()
        self.client = client
        self._managed = caches.acquire(View(MANAGED_RESOURCES, _state))
        self._config_maps = caches.acquire(View(CONFIG_MAPS, _version)) if objects else None
        self._managed.subscribe(self.notify)
        if self._config_maps is not None:
            self._config_maps.subscribe(self.notify)

    async def synced(self) -> None:
        await self._managed.synced.wait()
        if self._config_maps is not None:
            await self._config_maps.synced.wait()

    def checksums(self) -> dict[str, str]:
        return {name.name: state.checksum for name, state in self._managed.items()}

    def applied(self, size: int, *, other_than: dict[str, str] | None = None) -> int:
        """Number of completely applied ManagedResources, with another checksum than given."""
        before = other_than or {}
        return sum(
            state.applied and state.listed == size and state.checksum != before.get(name.name)
            for name, state in self._managed.items()
        )

    def managed(self) -> int:
        return len(self._managed)

    def is_repaired(self, drifted: Object, version: str) -> bool:
        """Whether a ConfigMap was changed again after the given state, and has this version now."""
        if self._config_maps is None:
            return False
        known = self._config_maps.version(key(drifted)), self._config_maps.get(key(drifted))
        return known[0] > resource_version(drifted) and known[1] == version


@asynccontextmanager
async def observing(cluster: Cluster, *namespaces: str, objects: bool = True) -> AsyncIterator[Observer]:
    """Observe the namespaces, with ConfigMaps if `objects` is set."""
    async with connected(cluster, namespaces=namespaces) as (client, caches):
        observer = Observer(client, caches, objects=objects)
        await observer.synced()
        yield observer
