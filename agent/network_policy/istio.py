"""Services that Istio's gateways lead to, by way of VirtualServices.

Followed only where the API server serves these kinds; they may come and go while the agent runs. Of a gateway's pods
only their namespaces count; they are watched with the gateway's own selector.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agent.network_policy import keys
from agent.network_policy.policies import GatewayRoute
from kube.cache import Caches, Change, Store, View
from kube.client import Form
from kube.objects import Key, Object, key, label_selector_text
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
    spec, namespace = obj.get("spec") or {}, key(obj).namespace
    return VirtualService(
        destinations=frozenset(_destinations(spec)),
        gateways=tuple(_gateway(name, namespace) for name in spec.get("gateways") or [] if name != _MESH),
    )


def _destinations(spec: Object) -> Iterator[tuple[Key, int]]:
    for protocol in ("http", "tls", "tcp"):
        for rule in spec.get(protocol) or []:
            for route in rule.get("route") or []:
                destination: Any = route.get("destination") or {}
                service = _service_of(destination.get("host") or "")
                number = (destination.get("port") or {}).get("number")
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
    return tuple(sorted(((obj.get("spec") or {}).get("selector") or {}).items()))


def _services(virtual: VirtualService) -> set[Key]:
    return {service for service, _ in virtual.destinations}


def _of_gateways(virtual: VirtualService) -> tuple[Key, ...]:
    return virtual.gateways


def _namespace_of(obj: Object) -> str:
    return key(obj).namespace


VIRTUAL_SERVICES_VIEW = View(
    keys.VIRTUAL_SERVICES, virtual_service, indexes=(("service", _services), ("gateway", _of_gateways))
)
GATEWAYS_VIEW = View(keys.GATEWAYS, _gateway_selector)

Selector = tuple[tuple[str, str], ...]


class Gateways:
    """Which gateways lead to which Services.

    Args:
        tell: called with each Service for which something changed.
    """

    def __init__(self, caches: Caches, *, tell: Callable[[Key], None]) -> None:
        self._caches = caches
        self._tell = tell
        self._virtual_services: Store[VirtualService] | None = None
        self._gateways: Store[Selector] | None = None
        self._pods: dict[Selector, tuple[View[str], Store[str]]] = {}
        self._releasing: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Follow VirtualServices; called when they are served."""
        self._gateways = self._caches.acquire(GATEWAYS_VIEW)
        self._virtual_services = self._caches.acquire(VIRTUAL_SERVICES_VIEW)
        self._gateways.subscribe(self._gateway_changed)
        self._virtual_services.subscribe(self._virtual_service_changed)

    async def close(self) -> None:
        await asyncio.gather(*self._releasing)
        if self._virtual_services is not None:
            await self._caches.release(VIRTUAL_SERVICES_VIEW)
            await self._caches.release(GATEWAYS_VIEW)
        for view, _ in self._pods.values():
            await self._caches.release(view)

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
            store = self._caches.acquire(view)
            self._pods[selector] = view, store

            def pod_changed(change: Change[str]) -> None:
                if change.old != change.new:
                    self._tell_of(selector)

            store.subscribe(pod_changed)
        return self._pods[selector][1]

    # --- listening

    def _virtual_service_changed(self, change: Change[VirtualService]) -> None:
        if change.old != change.new:
            for virtual in (change.old, change.new):
                for service in _services(virtual) if virtual is not None else ():
                    self._tell(service)

    def _gateway_changed(self, change: Change[Selector]) -> None:
        if change.old != change.new:
            self._tell_of_gateway(change.key)
            self._forget_pods(change.old)

    def _forget_pods(self, selector: Selector | None) -> None:
        """Stop to watch pods that no gateway selects any more."""
        assert self._gateways is not None
        if selector in self._pods and all(having != selector for _, having in self._gateways.items()):
            view, _ = self._pods.pop(selector)
            releasing = asyncio.create_task(self._caches.release(view))
            self._releasing.add(releasing)
            releasing.add_done_callback(self._releasing.discard)

    def _tell_of(self, selector: Selector) -> None:
        if self._gateways is not None:
            for gateway, having in list(self._gateways.items()):
                if having == selector:
                    self._tell_of_gateway(gateway)

    def _tell_of_gateway(self, gateway: Key) -> None:
        if self._virtual_services is not None:
            for _, virtual in self._virtual_services.by_index("gateway", gateway):
                for service in _services(virtual):
                    self._tell(service)
