"""One pass over a namespace with DestinationRules: compute its EnvoyFilters, write the difference."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from agent.resource_manager.istio_cluster_configuration.rules import (
    MOST_PATCHES,
    NAME,
    SUFFIX,
    DestinationRule,
    Existing,
    Namespace,
    Patches,
    Service,
    compute_patches,
    decided,
    envoy_filter,
)
from gardener.api import kinds
from kube.errors import KubeError
from kube.objects import Key, Object
from kube.repeats import Repeats
from kube.runtime.cache import Store
from kube.runtime.client import JSON_PATCH, Client
from kube.runtime.controller import Done, ReconcileError, Result
from kube.runtime.events import EventRecorder
from kube.runtime.yielding import Yielding

LIMIT_EXCEEDED = "LimitExceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class IstioStores:
    rules: Store[DestinationRule]
    services: Store[Service]
    namespaces: Store[Namespace]
    filters: Store[Existing]

    async def synced(self) -> None:
        for store in (self.rules, self.services, self.namespaces, self.filters):
            await store.synced.wait()


class Reconciler:
    """Args: recorder: records Events about DestinationRules."""

    def __init__(self, client: Client, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._left_out: Repeats[Key] = Repeats()
        self.stores: IstioStores
        """Set when the kinds are served; there are no keys before that."""

    @property
    def limited(self) -> int:
        """Number of DestinationRules that are left out."""
        return sum(map(len, self._left_out.all()))

    async def reconcile(self, key: Key) -> Result:
        await self.stores.synced()
        source = self.stores.namespaces.get(key)
        if source is None or source.is_terminating:
            self._left_out.forget(key)
            return Done()  # its filters go with it
        namespaces = self.stores.namespaces.items()
        ingress = sorted(key.name for key, found in namespaces if found.is_ingress and not found.is_terminating)
        rules = self.stores.rules.values_by_index("namespace", key.name)
        patches, yielding = Patches({namespace: [] for namespace in ingress}), Yielding()
        for _ in compute_patches(patches, rules, self.stores.services.get):
            await yielding.after_long()
        self._warn(key, patches.left_out)
        wanted = {
            Key(target, f"{key.name}{SUFFIX}"): envoy_filter(key.name, source.uid, target, found)
            for target, found in patches.by_namespace.items()
            if found
        }
        present = [each for each in self.stores.filters.items() if each[0].name == f"{key.name}{SUFFIX}"]
        work = [self._write(name, body) for name, body in wanted.items()]
        work += [self._delete(name, existing) for name, existing in present if name not in wanted]
        results = await asyncio.gather(*work, return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:
            raise ExceptionGroup("EnvoyFilters could not be written", errors)
        return Done()

    def _warn(self, source: Key, left_out: Sequence[DestinationRule]) -> None:
        """Report rules that the last pass did not leave out."""
        message = (
            f"The DestinationRules of a namespace may refer to {MOST_PATCHES} ports of Services at most; delete some"
        )
        rules = {rule.key: rule for rule in left_out}
        for name in self._left_out.news(source, rules):
            self._recorder.event(rules[name].reference(), "Warning", LIMIT_EXCEEDED, message, reporter=NAME)

    async def _write(self, name: Key, body: Object) -> None:
        present = self.stores.filters.get(name)
        if present is not None and present.digest == decided(body):
            return
        try:
            written = await (self._update(name, body, present) if present else self._create(name, body))
        except KubeError as error:
            raise ReconcileError(f"writing EnvoyFilter {name} failed: {error}") from error
        self.stores.filters.observe(written)

    async def _create(self, name: Key, body: Object) -> Object:
        if created := await self._client.create_if_missing(kinds.ENVOY_FILTERS, body):
            return created
        # One without our label exists.
        live = await self._client.get(kinds.ENVOY_FILTERS, name)
        return await self._update(name, body, Existing.of(live))

    async def _update(self, name: Key, body: Object, present: Existing) -> Object:
        meta = body["metadata"]
        patch = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": present.version},
            {"op": "add", "path": "/metadata/labels", "value": meta["labels"]},
            {"op": "add", "path": "/metadata/ownerReferences", "value": meta["ownerReferences"]},
            {"op": "add", "path": "/spec/configPatches", "value": body["spec"]["configPatches"]},
        ]
        return await self._client.patch(kinds.ENVOY_FILTERS, name, patch, content_type=JSON_PATCH)

    async def _delete(self, name: Key, present: Existing) -> None:
        try:
            await self._client.delete_if_exists(kinds.ENVOY_FILTERS, name, uid=present.uid)
        except KubeError as error:
            raise ReconcileError(f"deleting EnvoyFilter {name} failed: {error}") from error
