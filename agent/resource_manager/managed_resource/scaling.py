"""Autoscalers of the target cluster, watched as long as some workload is managed."""

import time
from collections.abc import Callable

from gardener.managed_resource.autoscaling import Scaled, list_error_text, scaled_by_hpa, scaled_by_hvpa, together
from kube.errors import Forbidden, KindUnavailable
from kube.objects import Object, group_of
from kube.resources import Resource
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.discovery import Discovery

_SYNC_SECONDS = 20.0
_KINDS: tuple[tuple[str, str, str, Callable[[Object], Scaled]], ...] = (
    ("autoscaling/v1", "HorizontalPodAutoscaler", "HPA", scaled_by_hpa),
    ("autoscaling.k8s.io/v1alpha1", "Hvpa", "HVPA", scaled_by_hvpa),
)
SCALABLE = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"})
"""Kinds whose merge depends on autoscalers."""


class ListError(Exception):
    """The autoscalers are unknown, so nothing may be applied: it might scale down running workloads."""


class Autoscalers:
    """Args: on_change: called when the scaled targets change."""

    def __init__(self, caches: Caches, discovery: Discovery, *, on_change: Callable[[], None]) -> None:
        self._caches = caches
        self._discovery = discovery
        self._on_change = on_change
        self._stores: dict[Resource, Store[Scaled]] = {}
        self._unsubscribe: list[Callable[[], None]] = []
        self._sync_until: dict[Resource, float] = {}
        """Common deadline of the first list, monotonic, by kind."""
        self._absent: set[str] = set()
        """apiVersions without autoscalers."""

    def kinds_changed(self, group: str) -> None:
        self._absent = {api_version for api_version in self._absent if group_of(api_version) != group}

    async def close(self) -> None:
        """End the watches."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        stores, self._stores = self._stores, {}
        for store in stores.values():
            await self._caches.release(store.view)

    async def targets(self) -> Scaled:
        """Return the scaled targets.

        Raises:
            ListError: they are unknown.
            KubeError: the discovery of kinds failed.
        """
        found: list[Scaled] = []
        for api_version, kind, short, project in _KINDS:
            if api_version in self._absent:
                continue
            resource = await self._discovery.kind_if_served(api_version, kind)
            if resource is None:
                await self._demand_gone(api_version, kind, short)
                self._absent.add(api_version)
                continue
            store = await self._store(resource, project)
            if not store.synced.is_set():
                raise ListError(list_error_text(short, "they have not been listed yet"))
            found += (scaled for _, scaled in store.items())
        return together(found)

    async def _demand_gone(self, api_version: str, kind: str, short: str) -> None:
        """Check that the kind, which a cluster need not have, does not exist; assume so without the right to check.

        Raises:
            ListError: the kind is only unavailable.
        """
        try:
            await self._discovery.require_gone(api_version, kind)
        except KindUnavailable as error:
            raise ListError(list_error_text(short, str(error))) from error
        except Forbidden:
            pass

    def _changed(self, change: Change[Scaled]) -> None:
        if change.old != change.new:
            self._on_change()

    async def _store(self, resource: Resource, project: Callable[[Object], Scaled]) -> Store[Scaled]:
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = self._caches.acquire(View(resource, project, streams=True))
            self._unsubscribe.append(store.subscribe(self._changed))
            self._sync_until[resource] = time.monotonic() + _SYNC_SECONDS
        left = self._sync_until[resource] - time.monotonic()
        if not store.synced.is_set() and left > 0:
            await self._caches.tried(store.view, timeout=left)
        return store
