"""What handlers know of the clusters: small projections, kept current by watches.

Only what an enabled webhook reads is watched. Handlers ask the API server nothing, with one exception: a ServiceAccount
that the watch has not told yet, since pods often follow theirs at once.
"""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from config.schema import ResourceManagerConfiguration
from kube.cache import Change, Store, View
from kube.client import Form
from kube.errors import KubeError, NotFound, Unreachable
from kube.objects import Key, Object, annotations, key, label_selector_text, labels
from kube.resources import CONFIG_MAPS, NAMESPACES, NODES, SERVICE_ACCOUNTS, SERVICES, Resource
from process.clusters import Cluster

HPAS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True)
HVPAS = Resource("autoscaling.k8s.io", "v1alpha1", "Hvpa", "hvpas", namespaced=True)

LOAD_BALANCING_CONFIG_MAP = "istio-internal-load-balancing"
LOAD_BALANCING_SERVICE = "istio-ingressgateway-internal"

HIGH_AVAILABILITY_PREFIX = "high-availability-config.resources.gardener.cloud/"

T = TypeVar("T")

_ARRIVAL_SECONDS = 2.0
_LIVE_READ_SECONDS = 5.0
_HVPA_SECONDS = 10.0


class NotCovered(KubeError):
    """A namespace is asked about that the configuration keeps out of the caches."""

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f'namespace "{namespace}" is not watched: add it to targetClientConnection.namespaces, '
            "or do not let the webhook be asked about it"
        )


# --- projections


class Namespace(NamedTuple):
    labels: dict[str, str]
    annotations: dict[str, str]
    """Those of high-availability-config only."""


class Target(NamedTuple):
    """What an autoscaler scales."""

    namespace: str
    api_version: str
    kind: str
    name: str


class Scaler(NamedTuple):
    target: Target | None
    max_replicas: int


def _namespace(obj: Object) -> Namespace:
    kept = {name: value for name, value in annotations(obj).items() if name.startswith(HIGH_AVAILABILITY_PREFIX)}
    return Namespace(labels(obj), kept)


def _target(obj: Object, reference: Mapping[str, Any] | None) -> Target | None:
    if not reference:
        return None
    api_version, kind, name = (reference.get(field) or "" for field in ("apiVersion", "kind", "name"))
    return Target(key(obj).namespace, api_version, kind, name)


def _hpa(obj: Object) -> Scaler:
    spec = obj.get("spec") or {}
    return Scaler(_target(obj, spec.get("scaleTargetRef")), spec.get("maxReplicas") or 0)


def _hvpa(obj: Object) -> Scaler:
    """One that does not deploy an HPA does not scale horizontally."""
    spec = obj.get("spec") or {}
    hpa = spec.get("hpa") or {}
    template = (hpa.get("template") or {}).get("spec") or {}
    target = _target(obj, spec.get("targetRef")) if hpa.get("deploy") is True else None
    return Scaler(target, template.get("maxReplicas") or 0)


def _by_target(scaler: Scaler) -> Iterable[Target]:
    return (scaler.target,) if scaler.target else ()


class Toleration(NamedTuple):
    """A toleration as far as it matters for equality; `operator` and the rest never empty where there is a default."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None

    def as_json(self) -> Object:
        fields = {"key": self.key, "operator": self.operator, "value": self.value, "effect": self.effect}
        toleration: Object = {name: value for name, value in fields.items() if value}
        if self.seconds is not None:
            toleration["tolerationSeconds"] = self.seconds
        return toleration


def _is_transient(taint_key: str) -> bool:
    """Taints that tell about the state of a Node, not for whom it is."""
    return "kubernetes.io/" in taint_key or taint_key == "ToBeDeletedByClusterAutoscaler"


def _tolerations(node: Object) -> tuple[Toleration, ...]:
    """What a pod must tolerate to be on this Node."""
    tolerations = []
    for taint in (node.get("spec") or {}).get("taints") or ():
        taint_key, value = taint.get("key") or "", taint.get("value") or ""
        if not _is_transient(taint_key):
            operator = "Equal" if value else "Exists"
            tolerations.append(Toleration(taint_key, operator, value, taint.get("effect") or "", None))
    return tuple(tolerations)


def _exists(_: Object) -> bool:
    return True


def _automounts(service_account: Object) -> bool:
    return service_account.get("automountServiceAccountToken") is not False


def _load_balancing(config_map: Object) -> Mapping[str, str]:
    return config_map.get("data") or {}


def _cluster_ips(service: Object) -> tuple[str, ...]:
    return tuple((service.get("spec") or {}).get("clusterIPs") or ())


_TARGET_INDEX = (("target", _by_target),)
_NAMESPACES_VIEW = View(NAMESPACES, _namespace, form=Form.METADATA)
_HPAS_VIEW = View(HPAS, _hpa, indexes=_TARGET_INDEX)
_HVPAS_VIEW = View(HVPAS, _hvpa, indexes=_TARGET_INDEX)
_NODES_VIEW = View(NODES, _exists, form=Form.METADATA)
_SERVICE_ACCOUNTS_VIEW = View(SERVICE_ACCOUNTS, _automounts)
_CONFIG_MAPS_VIEW = View(CONFIG_MAPS, _load_balancing, field_selector=f"metadata.name={LOAD_BALANCING_CONFIG_MAP}")
_SERVICES_VIEW = View(SERVICES, _cluster_ips, field_selector=f"metadata.name={LOAD_BALANCING_SERVICE}")


class Facts:
    """Args: config: tells which webhooks there are, and thereby what is watched."""

    _namespaces: Store[Namespace]
    _hpas: Store[Scaler]
    _hvpas: Store[Scaler]
    _nodes: Store[bool]
    _system_nodes: Store[tuple[Toleration, ...]]
    _service_accounts: Store[bool]
    _config_maps: Store[Mapping[str, str]]
    _services: Store[tuple[str, ...]]

    def __init__(self, config: ResourceManagerConfiguration, source: Cluster, target: Cluster) -> None:
        self.source = source
        self.target = target
        self._webhooks = config.webhooks
        self._views: list[View[Any]] = []
        self._node_tolerations: tuple[Toleration, ...] | None = None

    async def start(self) -> None:
        """Begin to watch. Only Hvpas are waited for, for a moment: they may not exist, or not be ours to read."""
        webhooks = self._webhooks
        if webhooks.high_availability_config.enabled:
            self._namespaces = self._acquire(_NAMESPACES_VIEW)
            self._hpas = self._acquire(_HPAS_VIEW)
            self._hvpas = self._acquire(_HVPAS_VIEW, needed=False)
            if webhooks.high_availability_config.behavior == "latest":
                self._nodes = self._acquire(_NODES_VIEW)
        if webhooks.system_components_config.enabled:
            selector = label_selector_text(webhooks.system_components_config.node_selector)
            self._system_nodes = self._acquire(View(NODES, _tolerations, label_selector=selector))
            self._system_nodes.subscribe(self._node_changed)
        if webhooks.projected_token_mount.enabled:
            self._service_accounts = self._acquire(_SERVICE_ACCOUNTS_VIEW)
        if webhooks.pod_kube_apiserver_load_balancing.enabled:
            self._config_maps = self._acquire(_CONFIG_MAPS_VIEW)
            self._services = self._acquire(_SERVICES_VIEW)
        if _HVPAS_VIEW in self._views:
            await self.target.caches.tried(_HVPAS_VIEW, timeout=_HVPA_SECONDS)

    async def close(self) -> None:
        views, self._views = self._views, []
        for view in views:
            await self.target.caches.release(view)

    def _acquire(self, view: View[T], *, needed: bool = True) -> Store[T]:
        store = self.target.caches.acquire(view, needed_at_start=needed)
        self._views.append(view)
        return store

    # --- high-availability-config

    async def namespace(self, name: str) -> Namespace:
        """One that the watch has not told yet is waited for: workloads follow their namespace at once.

        Raises:
            NotFound: there is none.
        """
        wanted = Key("", name)
        found = self._namespaces.get(wanted) or await self._arrival(wanted)
        if found is None:
            raise _not_found(NAMESPACES, name)
        return found

    async def _arrival(self, wanted: Key) -> Namespace | None:
        arrived = asyncio.Event()

        def changed(change: Change[Namespace]) -> None:
            if change.key == wanted:
                arrived.set()

        unsubscribe = self._namespaces.subscribe(changed)
        try:
            async with asyncio.timeout(_ARRIVAL_SECONDS):
                await arrived.wait()
        except TimeoutError:
            return None
        finally:
            unsubscribe()
        return self._namespaces.get(wanted)

    def max_replicas(self, target: Target) -> int | None:
        """To how many replicas something is scaled horizontally; None: it is not.

        Raises:
            NotCovered.
        """
        self._demand_covered(HPAS, target.namespace)
        for store in (self._hpas, self._hvpas):
            for _, scaler in store.by_index("target", target):
                return scaler.max_replicas
        return None

    def several_nodes(self) -> bool:
        return len(self._nodes) > 1

    # --- all changes of pods in one call

    async def labels_of_namespace(self, name: str) -> dict[str, str]:
        """Namespaces are watched from the first question on: few API servers ask the combined webhook.

        Raises:
            NotFound: there is no such namespace.
            Unreachable: the API server does not tell the namespaces.
        """
        if _NAMESPACES_VIEW not in self._views:
            self._namespaces = self._acquire(_NAMESPACES_VIEW, needed=False)
        if not self._namespaces.synced.is_set():
            try:
                async with asyncio.timeout(_ARRIVAL_SECONDS):
                    await self._namespaces.synced.wait()
            except TimeoutError:
                raise Unreachable("the namespaces are not known yet") from None
        return (await self.namespace(name)).labels

    # --- system-components-config

    def node_tolerations(self) -> tuple[Toleration, ...]:
        """What pods need to be on any of the configured Nodes; the same tuple until something changes."""
        if self._node_tolerations is None:
            nodes = sorted(self._system_nodes.items())
            self._node_tolerations = tuple(dict.fromkeys(chain.from_iterable(found for _, found in nodes)))
        return self._node_tolerations

    def _node_changed(self, change: Change[tuple[Toleration, ...]]) -> None:
        # Nodes tell every few minutes that they live; their taints are another matter.
        if change.old != change.new:
            self._node_tolerations = None

    # --- projected-token-mount

    async def automounts(self, namespace: str, service_account: str) -> bool:
        """Whether pods of a ServiceAccount get a token from the API server itself.

        Raises:
            NotFound: there is none; asked for in the cluster if the watch knows none.
            KubeError: that failed.
        """
        found = self._service_accounts.get(Key(namespace, service_account))
        if found is None:
            live = await self.target.client.get(
                SERVICE_ACCOUNTS, service_account, namespace=namespace, timeout=_LIVE_READ_SECONDS
            )
            self._service_accounts.observe(live)
            found = _automounts(live)
        return found

    # --- pod-kube-apiserver-load-balancing

    def load_balancing(self, namespace: str) -> Mapping[str, str] | None:
        """What the ConfigMap for load balancing says in a namespace; None: there is none.

        Raises:
            NotCovered.
        """
        self._demand_covered(CONFIG_MAPS, namespace)
        return self._config_maps.get(Key(namespace, LOAD_BALANCING_CONFIG_MAP))

    def gateway_ips(self, namespace: str) -> tuple[str, ...]:
        """The addresses of the internal ingress gateway in a namespace.

        Raises:
            NotFound: there is no such Service.
            NotCovered.
        """
        self._demand_covered(SERVICES, namespace)
        found = self._services.get(Key(namespace, LOAD_BALANCING_SERVICE))
        if found is None:
            raise _not_found(SERVICES, LOAD_BALANCING_SERVICE)
        return found

    def _demand_covered(self, resource: Resource, namespace: str) -> None:
        if not self.target.caches.covers(resource, namespace):
            raise NotCovered(namespace)


def _not_found(resource: Resource, name: str) -> NotFound:
    details = {"name": name, "kind": resource.plural}
    return NotFound(404, message=f'{resource.plural} "{name}" not found', reason="NotFound", details=details)
