"""Services that Istio's gateways lead to, by way of VirtualServices.

Followed only where the API server serves these kinds; they may come and go while the agent runs. Of a gateway's pods
only their namespaces count; they are watched with the gateway's own selector.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.shared.network_policy.policies import GatewayRoute
from gardener import kinds
from kube.cache import Caches, Change, Store, View
from kube.client import Form
from kube.loop import ControlLoop, Queue, enqueue_mapped
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

_HOST_END = ".svc.cluster.local"
_MESH = "mesh"


@dataclass(frozen=True, slots=True)
class VirtualService:
    destinations: frozenset[tuple[Key, int]]
    """Services and the numbers of their ports."""
    gateways: tuple[Key, ...]


def virtual_service(obj: Object) -> VirtualService:
    """What counts of a VirtualService; hosts that are no Service's full name lead nowhere."""
    gateways, namespace = texts(spec(obj).get("gateways")), key(obj).namespace
    return VirtualService(
        destinations=frozenset(_destinations(spec(obj))),
        gateways=tuple(_gateway(name, namespace) for name in gateways if name != _MESH),
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


def _services(virtual: VirtualService) -> set[Key]:
    return {service for service, _ in virtual.destinations}


def _of_gateways(virtual: VirtualService) -> tuple[Key, ...]:
    return virtual.gateways


def _namespace_of(obj: Object) -> str:
    return key(obj).namespace


VIRTUAL_SERVICES_VIEW = View(
    kinds.VIRTUAL_SERVICES, virtual_service, indexes=(("service", _services), ("gateway", _of_gateways)), most=64 << 10
)
GATEWAYS_VIEW = View(kinds.GATEWAYS, _gateway_selector)

Selector = tuple[tuple[str, str], ...]


class Gateways:
    """Which gateways lead to which Services."""

    def __init__(self, loop: ControlLoop, caches: Caches) -> None:
        self._loop = loop
        self._caches = caches
        self._virtual_services: Store[VirtualService] | None = None
        self._gateways: Store[Selector] | None = None
        self._pods: dict[Selector, Store[str]] = {}

    def begin(self) -> None:
        """Follow VirtualServices; called when they are served."""
        self._gateways = self._loop.watch(self._caches, GATEWAYS_VIEW, self._gateway_changed)
        self._virtual_services = self._loop.watch(
            self._caches, VIRTUAL_SERVICES_VIEW, enqueue_mapped(_services_of_change)
        )

    # --- reading

    def are_known(self, service: Key) -> bool:
        """Whether all that leads to a Service is known: lists that are needed for it are complete."""
        if self._virtual_services is None:
            return True
        selectors = {self._selector(gateway) for _, gateway in self._leading_to(service)}
        return self._are_listed() and all(self._pods_of(selector).synced.is_set() for selector in selectors if selector)

    def _are_listed(self) -> bool:
        stores = self._virtual_services, self._gateways
        return all(store is not None and store.synced.is_set() for store in stores)

    def routes(self, service: Key) -> list[GatewayRoute]:
        """In a stable order; empty while lists are not complete."""
        found = {}
        for virtual, gateway in self._leading_to(service):
            selector = self._selector(gateway)
            if not selector:
                continue
            namespaces = frozenset(namespace for _, namespace in self._pods_of(selector).items())
            for destination, number in virtual.destinations:
                if destination == service:
                    found[number, selector] = GatewayRoute(number, dict(selector), namespaces)
        return [found[each] for each in sorted(found)]

    def problems(self, service: Key) -> list[str]:
        """What keeps a gateway from being let through, for people."""
        found = []
        for _, gateway in self._leading_to(service):
            selector = self._selector(gateway)
            if selector is None:
                found.append(f"Gateway {gateway} does not exist")
            elif not selector:
                found.append(
                    f"Gateway {gateway} has no selector, which is not supported by the network policy controller"
                )
        return found

    def _leading_to(self, service: Key) -> Iterator[tuple[VirtualService, Key]]:
        """VirtualServices of the Service's namespace, with each of their gateways."""
        if self._virtual_services is not None and self._are_listed():
            for name, virtual in self._virtual_services.by_index("service", service):
                if name.namespace == service.namespace:
                    for gateway in virtual.gateways:
                        yield virtual, gateway

    def _selector(self, gateway: Key) -> Selector | None:
        return self._gateways.get(gateway) if self._gateways is not None else None

    def _pods_of(self, selector: Selector) -> Store[str]:
        if selector not in self._pods:
            view = View(PODS, _namespace_of, form=Form.METADATA, label_selector=label_selector_text(dict(selector)))
            handler = enqueue_mapped(lambda _: self._services_for_selector(selector))
            self._pods[selector] = self._loop.watch(self._caches, view, handler)
        return self._pods[selector]

    # --- mapping events to Services

    def _gateway_changed(self, queue: Queue, change: Change[Selector]) -> None:
        if change.old != change.new:
            for service in self._services_for_gateway(change.key):
                queue.add(service)
            if change.old in self._pods and not self._having(change.old):
                self._loop.unwatch(self._pods.pop(change.old))

    def _having(self, selector: Selector) -> list[Key]:
        gateways = self._gateways.items() if self._gateways is not None else ()
        return [gateway for gateway, having in gateways if having == selector]

    def _services_for_selector(self, selector: Selector) -> Iterator[Key]:
        for gateway in self._having(selector):
            yield from self._services_for_gateway(gateway)

    def _services_for_gateway(self, gateway: Key) -> Iterator[Key]:
        if self._virtual_services is not None:
            for virtual in self._virtual_services.values_by_index("gateway", gateway):
                yield from _services(virtual)


def _services_of_change(change: Change[VirtualService]) -> Iterator[Key]:
    for virtual in (change.old, change.new):
        if virtual is not None:
            yield from _services(virtual)
