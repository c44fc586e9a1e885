"""Services that Istio's gateways lead to, through VirtualServices.

Followed only where the API server serves these kinds; they may come and go while the agent runs. The namespaces of a
gateway's pods count, and the labels by which they reach Services without a route; the pods are watched with the
gateway's own selector.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from agent.shared.network_policy.rules.limits import MOST_GATEWAYS, MOST_WATCHES
from agent.shared.network_policy.rules.policies import GatewayRoute
from agent.shared.network_policy.rules.projections import Service, client_labels
from agent.shared.network_policy.stores import leading_to
from gardener.api import kinds
from kube.objects import (
    Key,
    Object,
    integer,
    key,
    label_selector_text,
    mapping,
    mappings,
    spec,
    string_map,
    text,
    texts,
)
from kube.resources import PODS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client, Form
from kube.runtime.fan_out import Changes
from kube.runtime.loop import ControlLoop, EventHandler, Queue, enqueue_affected, enqueue_users, enqueue_users_of
from kube.runtime.presence import present

_HOST_END = ".svc.cluster.local"
_MESH = "mesh"


@dataclass(frozen=True, slots=True)
class VirtualService:
    destinations: Mapping[Key, frozenset[int]]
    """Services in the namespace of the VirtualService, with the numbers of their ports."""
    gateways: tuple[Key, ...]
    """Gateways without duplicates."""


def virtual_service(obj: Object) -> VirtualService:
    """Relevant fields of a VirtualService; hosts that are no full name of a Service of its namespace lead nowhere."""
    names, namespace = texts(spec(obj).get("gateways")), key(obj).namespace
    destinations: dict[Key, set[int]] = {}
    for service, number in _destinations(spec(obj)):
        if service.namespace == namespace:
            destinations.setdefault(service, set()).add(number)
    return VirtualService(
        destinations={service: frozenset(numbers) for service, numbers in destinations.items()},
        gateways=tuple(dict.fromkeys(_gateway(name, namespace) for name in names if name != _MESH)),
    )


def _destinations(routing: Object) -> Iterator[tuple[Key, int]]:
    for protocol in ("http", "tls", "tcp"):
        for rule in mappings(routing.get(protocol)):
            for route in mappings(rule.get("route")):
                destination = mapping(route.get("destination"))
                service = _service_of(text(destination.get("host")))
                number = integer(mapping(destination.get("port")).get("number"))
                if service is not None and number:
                    yield service, number


def _service_of(host: str) -> Key | None:
    name, dot, namespace = host.removesuffix(_HOST_END).partition(".")
    is_full = host.endswith(_HOST_END) and bool(name and dot and namespace) and "." not in namespace
    return Key(namespace, name) if is_full else None


def _gateway(name: str, namespace: str) -> Key:
    first, slash, second = name.partition("/")
    return Key(first, second) if slash else Key(namespace, first)


def _gateway_selector(obj: Object) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(string_map(spec(obj).get("selector")).items()))


def _services(virtual: VirtualService) -> Iterable[Key]:
    return virtual.destinations


def _of_gateways(virtual: VirtualService) -> tuple[Key, ...]:
    return virtual.gateways


@dataclass(frozen=True, slots=True)
class GatewayPod:
    namespace: str
    labels: frozenset[str]
    """Labels of clients."""

    @classmethod
    def of(cls, obj: Object) -> "GatewayPod":
        return cls(key(obj).namespace, client_labels(obj))


def _namespace_of(pod: GatewayPod) -> tuple[str]:
    return (pod.namespace,)


def _itself(kept: Hashable) -> tuple[Hashable]:
    return (kept,)


VIRTUAL_SERVICES_VIEW = View(
    kinds.VIRTUAL_SERVICES, virtual_service, indexes=(("service", _services), ("gateway", _of_gateways)), most=64 << 10
)
GATEWAYS_VIEW = View(kinds.GATEWAYS, _gateway_selector, indexes=(("selector", _itself),))

Selector = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Pods:
    """Pods of gateways with the same selector."""

    store: Store[GatewayPod]
    first_user: str
    """Namespace whose Services caused the watch."""
    by_namespace: Mapping[str, frozenset[str]] | None = None
    """Namespaces of the pods, with the labels of clients that all pods there have; None if not computed yet."""


class Gateways:
    """Gateways that lead to Services.

    Args:
        services: existing Services; one that comes later is enqueued by its own watch.
    """

    def __init__(self, loop: ControlLoop, client: Client, caches: Caches, services: Store[Service]) -> None:
        self._loop = loop
        self._client = client
        self._caches = caches
        self._services = services
        self._virtual_services: Store[VirtualService] | None = None
        self._gateways: Store[Selector] | None = None
        self._pods: dict[Selector, _Pods] = {}
        self._enqueue_services: EventHandler[Selector] = enqueue_users(self._services_for_gateway)

    def begin(self) -> None:
        """Watch VirtualServices and Gateways; called when the API server serves them."""
        self._gateways = self._loop.watch(self._caches, GATEWAYS_VIEW, self._gateway_changed)
        self._virtual_services = self._loop.watch(
            self._caches, VIRTUAL_SERVICES_VIEW, enqueue_affected(self._services_of_virtual)
        )

    # --- reading

    def are_known(self, service: Key) -> bool:
        """Whether all routes to a Service are known: the required lists are complete."""
        if self._virtual_services is None:
            return True
        watched = (self._pods_of(gateway, service) for _, gateway in self._leading_to(service))
        return self._are_listed() and all(pods.store.synced.is_set() for pods in watched if pods is not None)

    def _are_listed(self) -> bool:
        stores = self._virtual_services, self._gateways
        return all(store is not None and store.synced.is_set() for store in stores)

    async def look(self, service: Key) -> None:
        """Read Gateways that lead to a Service and are not cached yet.

        Raises:
            KubeError: a read failed.
        """
        if self._gateways is not None and self._services.get(service) is not None:
            for gateway in {gateway for _, gateway in self._leading_to(service)}:
                await present(self._client, self._gateways, gateway)

    def routes(self, service: Key) -> list[GatewayRoute]:
        """Routes to a Service in a stable order; empty while lists are not complete."""
        found = {}
        for virtual, gateway in self._leading_to(service):
            selector, pods = self._selector(gateway), self._pods_of(gateway, service)
            if selector and pods is not None:
                for number in virtual.destinations[service]:
                    found[number, selector] = GatewayRoute(number, dict(selector), _by_namespace(pods))
        return [found[each] for each in sorted(found)]

    def problems(self, service: Key) -> list[str]:
        """Messages for users: reasons why a gateway is not let through."""
        found, gateways = [], dict.fromkeys(gateway for _, gateway in self._leading_to(service))
        for gateway in gateways:
            selector = self._selector(gateway)
            if selector is None:
                found.append(f"Gateway {gateway} does not exist")
            elif not selector:
                found.append(
                    f"Gateway {gateway} has no selector, which is not supported by the network policy controller"
                )
            elif self._pods_of(gateway, service) is None:
                found.append(
                    f"Gateway {gateway} has the selector {label_selector_text(dict(selector))}, but the Services of "
                    f"the namespace already use {MOST_WATCHES} other selectors of Gateways; use Gateways with the "
                    "same selector"
                )
        if len(gateways) == MOST_GATEWAYS:
            found.append(f"VirtualServices refer to {MOST_GATEWAYS} Gateways or more; further ones are ignored")
        return found

    def _leading_to(self, service: Key) -> Iterator[tuple[VirtualService, Key]]:
        """VirtualServices that lead to the Service, with each of their gateways."""
        gateways: set[Key] = set()
        if self._virtual_services is not None and self._are_listed():
            for virtual in self._virtual_services.values_by_index("service", service):
                for gateway in virtual.gateways[:MOST_GATEWAYS]:
                    gateways.add(gateway)
                    if len(gateways) > MOST_GATEWAYS:
                        return
                    yield virtual, gateway

    def _selector(self, gateway: Key) -> Selector | None:
        return self._gateways.get(gateway) if self._gateways is not None else None

    def _pods_of(self, gateway: Key, service: Key) -> _Pods | None:
        """None if the gateway selects nothing, or the Service's namespace has the maximum of watches."""
        selector, user = self._selector(gateway), service.namespace
        if not selector:
            return None
        if selector not in self._pods:
            if sum(pods.first_user == user for pods in self._pods.values()) >= MOST_WATCHES:
                return None
            view = View(
                PODS,
                GatewayPod.of,
                form=Form.METADATA,
                label_selector=label_selector_text(dict(selector)),
                indexes=(("namespace", _namespace_of),),
            )
            handler = enqueue_users_of(partial(self._changed_by, selector), self._services_behind)
            self._pods[selector] = _Pods(self._loop.watch(self._caches, view, handler), user)
        return self._pods[selector]

    # --- mapping events to Services

    def _gateway_changed(self, queue: Queue, change: Change[Selector]) -> None:
        self._enqueue_services(queue, change)
        if change.old != change.new and change.old in self._pods and not self._having(change.old):
            self._loop.unwatch(self._pods.pop(change.old).store)

    def _having(self, selector: Selector) -> list[Key]:
        return self._gateways.keys_by_index("selector", selector) if self._gateways is not None else []

    def _changed_by(self, selector: Selector, change: Change[GatewayPod]) -> tuple[Selector, ...]:
        """Return the selector if the first pod in a namespace came, the last one went, or common labels changed."""
        pods = self._pods.get(selector)
        if pods is None:
            return ()
        namespace, known = change.key.namespace, pods.by_namespace
        if known is None:
            _by_namespace(pods)
        else:
            before = known.get(namespace)
            if before is not None and change.old is None and change.new is not None:
                after: frozenset[str] | None = before & change.new.labels
            else:
                after = _common_labels(pods.store.values_by_index("namespace", namespace))
            if after == before:
                return ()
            others = {name: labels for name, labels in known.items() if name != namespace}
            pods.by_namespace = others if after is None else {**others, namespace: after}
        return (selector,)

    def _services_behind(self, selector: Selector) -> Iterator[Key]:
        for gateway in self._having(selector):
            yield from self._services_for_gateway(gateway)

    def _services_for_gateway(self, gateway: Key) -> Iterator[Key]:
        if self._virtual_services is not None:
            for virtual in self._virtual_services.values_by_index("gateway", gateway):
                yield from (service for service in virtual.destinations if self._services.get(service) is not None)

    def _services_of_virtual(self, virtual: Key, changes: Changes[VirtualService]) -> Iterable[Key]:
        return leading_to(self._services, virtual.namespace, changes, _services)


def _by_namespace(pods: _Pods) -> Mapping[str, frozenset[str]]:
    if pods.by_namespace is None:
        found: dict[str, frozenset[str]] = {}
        for pod in pods.store.values():
            found[pod.namespace] = found.get(pod.namespace, pod.labels) & pod.labels
        pods.by_namespace = found
    return pods.by_namespace


def _common_labels(pods: Iterable[GatewayPod]) -> frozenset[str] | None:
    """Labels that all pods have; None without pods."""
    labels = [pod.labels for pod in pods]
    return frozenset.intersection(*labels) if labels else None
