"""The autoscalers of the target cluster, watched as long as some workload is managed."""

from agent.managed_resource.autoscaling import Scaled, list_error_text, scaled_by
from kube.cache import Caches, Store, View
from kube.discovery import Discovery
from kube.errors import KindNotServed
from kube.objects import Object, group_of, metadata
from kube.resources import Resource

_SYNC_SECONDS = 20.0
_KINDS = (("autoscaling/v1", "HorizontalPodAutoscaler", "HPA"), ("autoscaling.k8s.io/v1alpha1", "Hvpa", "HVPA"))
SCALABLE = frozenset({"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"})
"""Kinds whose merge asks for autoscalers."""


class ListError(Exception):
    """The autoscalers are not known, so nothing may be applied: it might scale down what runs."""


def _project(autoscaler: Object) -> Object:
    """The object with what says what it scales."""
    meta, spec = metadata(autoscaler), autoscaler.get("spec") or {}
    return {
        "metadata": {name: meta[name] for name in ("namespace", "name") if name in meta},
        "spec": {name: spec[name] for name in ("scaleTargetRef", "targetRef") if name in spec}
        | {part: {"deploy": (spec.get(part) or {}).get("deploy")} for part in ("hpa", "vpa") if spec.get(part)},
    }


class Autoscalers:
    def __init__(self, caches: Caches, discovery: Discovery) -> None:
        self._caches = caches
        self._discovery = discovery
        self._stores: dict[Resource, Store[Object]] = {}
        self._absent: set[str] = set()
        """apiVersions whose autoscalers are not served."""

    def kinds_changed(self, group: str) -> None:
        self._absent = {api_version for api_version in self._absent if group_of(api_version) != group}

    async def targets(self) -> Scaled:
        """What is scaled now.

        Raises:
            ListError, TargetReferenceError: it can't be told.
            KubeError: the API server could not be asked which kinds it serves.
        """
        found: dict[str, list[Object]] = {}
        for api_version, kind, short in _KINDS:
            if api_version in self._absent:
                continue
            try:
                store = await self._store(await self._discovery.find(api_version, kind))
            except KindNotServed:
                self._absent.add(api_version)
                continue
            if not store.synced.is_set():
                raise ListError(list_error_text(short, "no list of them could be had yet"))
            found[short] = [autoscaler for _, autoscaler in store.items()]
        return scaled_by(found.get("HPA", ()), found.get("HVPA", ()))

    async def _store(self, resource: Resource) -> Store[Object]:
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = self._caches.acquire(View(resource, _project))
        if not store.synced.is_set():
            await self._caches.tried(store.view, timeout=_SYNC_SECONDS)
        return store
