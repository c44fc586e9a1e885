"""The controller `istio-cluster-configuration`: EnvoyFilters for the DestinationRules of a namespace.

A key is a namespace that has DestinationRules. For each namespace with Istio's ingress gateways it has at most one
EnvoyFilter. All kinds are watched only where Istio is installed, which may happen later.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from agent.context import Context
from agent.istio_cluster_configuration import keys
from agent.istio_cluster_configuration.facts import DestinationRule, Existing, Namespace, Service, digest
from agent.istio_cluster_configuration.patches import config_patches, envoy_filter, resolve
from agent.late_kinds import LateKinds
from kube.cache import Caches, Change, Store, View
from kube.client import JSON_PATCH, Client
from kube.controller import Controller, Done, ReconcileError, Result
from kube.errors import AlreadyExists, KubeError, NotFound
from kube.objects import Key, Object
from kube.queue import CHANGE, RESYNC
from kube.resources import NAMESPACES, SERVICES


def _source(rule: DestinationRule) -> tuple[str, ...]:
    return (rule.key.namespace,)


def _service(rule: DestinationRule) -> tuple[Key, ...]:
    service = rule.service()
    return (service,) if service is not None else ()


RULES_VIEW = View(keys.DESTINATION_RULES, DestinationRule.of, indexes=(("namespace", _source), ("service", _service)))
SERVICES_VIEW = View(SERVICES, Service.of)
NAMESPACES_VIEW = View(NAMESPACES, Namespace.of)
FILTERS_VIEW = View(keys.ENVOY_FILTERS, Existing.of, label_selector=f"{keys.MANAGED_BY}={keys.MANAGER}")
_VIEWS: tuple[View[Any], ...] = (RULES_VIEW, SERVICES_VIEW, NAMESPACES_VIEW, FILTERS_VIEW)


class IstioClusterConfigurationLoop:
    """See `agent.context.ControlLoop`."""

    def __init__(self, context: Context) -> None:
        self._client: Client = context.target.client
        self._caches: Caches = context.target.caches
        self._late = LateKinds(
            context.target.discovery, (keys.DESTINATION_RULES, keys.ENVOY_FILTERS), begin=self._begin
        )
        self._rules: Store[DestinationRule]
        self._services: Store[Service]
        self._namespaces: Store[Namespace]
        self._filters: Store[Existing]
        self.controller = Controller(
            keys.NAME,
            self._reconcile,
            kind=NAMESPACES,
            concurrency=context.config.controllers.istio_cluster_configuration.concurrent_syncs,
        )

    async def start(self) -> None:
        await self._late.look()

    async def close(self) -> None:
        await self._late.close()
        if self._late.have_come:
            for view in _VIEWS:
                await self._caches.release(view)

    def kinds_changed(self, group: str) -> None:
        """CustomResourceDefinitions of the group came, changed or went in the target cluster."""
        self._late.kinds_changed(group)

    def _begin(self) -> None:
        self._rules, self._services, self._namespaces, self._filters = map(self._caches.acquire, _VIEWS)
        self._rules.subscribe(self._rule_changed)
        self._services.subscribe(self._service_changed)
        self._namespaces.subscribe(self._namespace_changed)
        self._filters.subscribe(self._filter_changed)

    # --- one pass

    async def _reconcile(self, key: Key) -> Result:
        for store in (self._rules, self._services, self._namespaces, self._filters):
            await store.synced.wait()
        source = self._namespaces.get(key)
        if source is None or source.is_terminating:
            return Done()  # its filters go with it
        rules = [rule for _, rule in self._rules.by_index("namespace", key.name)]
        patches = config_patches(rules, self._services.get, self._ingress_namespaces())
        wanted = {
            Key(target, f"{key.name}{keys.SUFFIX}"): envoy_filter(key.name, source.uid, target, found)
            for target, found in patches.items()
            if found
        }
        present = [each for each in self._filters.items() if each[0].name == f"{key.name}{keys.SUFFIX}"]
        work = [self._write(name, body) for name, body in wanted.items()]
        work += [self._delete(name, existing) for name, existing in present if name not in wanted]
        results = await asyncio.gather(*work, return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        if errors:
            raise ExceptionGroup("EnvoyFilters could not be written", errors)
        return Done()

    def _ingress_namespaces(self) -> list[str]:
        return sorted(
            key.name
            for key, namespace in self._namespaces.items()
            if namespace.is_ingress and not namespace.is_terminating
        )

    async def _write(self, name: Key, body: Object) -> None:
        present = self._filters.get(name)
        if present is not None and present.digest == digest(body):
            return
        try:
            written = await (self._update(name, body, present) if present else self._create(name, body))
        except KubeError as error:
            raise ReconcileError(f"writing EnvoyFilter {name} failed: {error}") from error
        self._filters.observe(written)

    async def _create(self, name: Key, body: Object) -> Object:
        try:
            return await self._client.create(keys.ENVOY_FILTERS, body)
        except AlreadyExists:  # without our label
            live = await self._client.get(keys.ENVOY_FILTERS, name.name, namespace=name.namespace)
            return await self._update(name, body, Existing.of(live))

    async def _update(self, name: Key, body: Object, present: Existing) -> Object:
        meta = body["metadata"]
        patch = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": present.version},
            {"op": "add", "path": "/metadata/labels", "value": meta["labels"]},
            {"op": "add", "path": "/metadata/ownerReferences", "value": meta["ownerReferences"]},
            {"op": "add", "path": "/spec/configPatches", "value": body["spec"]["configPatches"]},
        ]
        return await self._client.patch(
            keys.ENVOY_FILTERS, name.name, patch, namespace=name.namespace, content_type=JSON_PATCH
        )

    async def _delete(self, name: Key, present: Existing) -> None:
        try:
            await self._client.delete(keys.ENVOY_FILTERS, name.name, namespace=name.namespace, uid=present.uid)
        except NotFound:
            pass
        except KubeError as error:
            raise ReconcileError(f"deleting EnvoyFilter {name} failed: {error}") from error

    # --- what concerns which namespace

    def _tell(self, namespace: str, *, is_routine: bool = False) -> None:
        self.controller.queue.add(Key("", namespace), RESYNC if is_routine else CHANGE)

    def _rule_changed(self, change: Change[DestinationRule]) -> None:
        if change.initial or change.old != change.new:
            self._tell(change.key.namespace, is_routine=change.initial)

    def _service_changed(self, change: Change[Service]) -> None:
        if change.old != change.new:
            for _, rule in self._rules.by_index("service", change.key):
                self._tell(rule.key.namespace)

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        before, after = (
            state is not None and state.is_ingress and not state.is_terminating for state in (change.old, change.new)
        )
        if before != after:
            for namespace in set(self._exporting_to(change.key.name)):
                self._tell(namespace)

    def _exporting_to(self, namespace: str) -> Iterator[str]:
        return (
            rule.key.namespace
            for _, rule in self._rules.items()
            if resolve(rule.export_to, rule.key.namespace, [namespace])
        )

    def _filter_changed(self, change: Change[Existing]) -> None:
        if change.initial or change.old != change.new:
            self._tell(change.key.name.removesuffix(keys.SUFFIX), is_routine=change.initial)
