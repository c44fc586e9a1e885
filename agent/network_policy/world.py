"""What the controller sees of the cluster, and which Services a change concerns."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from agent.network_policy import keys
from agent.network_policy.facts import Backend, Existing, Namespace, Service, backends, client_labels
from agent.network_policy.policies import GatewayRoute, Rules, Surroundings, is_handled, selects
from kube.cache import Caches, Change, Store, View
from kube.client import Form
from kube.objects import Key
from kube.resources import NAMESPACES, PODS, SERVICES

Tell = Callable[[Key, bool], None]
"""Called with a Service that has to be looked at, and whether nothing happened to it (a list, a resync)."""


def _in_namespace(service: Service) -> tuple[str, ...]:
    return (service.key.namespace,)


def _letting_in(service: Service) -> tuple[bool, ...]:
    return (True,) if service.wishes.namespace_selectors else ()


def _owner(policy: Existing) -> tuple[Key, ...]:
    return (policy.owner,)


def _services_of(found: frozenset[Backend]) -> set[Key]:
    return {backend.service for backend in found}


def _asking(pod: "_Client") -> Iterator[tuple[str, str]]:
    return ((pod.namespace, label) for label in pod.labels)


class _Client:
    """A pod with labels that ask to be let through."""

    __slots__ = ("labels", "namespace")

    def __init__(self, obj: dict[str, Any]) -> None:
        self.namespace: str = obj["metadata"].get("namespace", "")
        self.labels = client_labels(obj)


SERVICES_VIEW = View(SERVICES, Service.of, indexes=(("namespace", _in_namespace), ("letting in", _letting_in)))
NAMESPACES_VIEW = View(NAMESPACES, Namespace.of, form=Form.METADATA)
POLICIES_VIEW = View(
    keys.NETWORK_POLICIES,
    Existing.of,
    label_selector=f"{keys.SERVICE_NAME},{keys.SERVICE_NAMESPACE}",
    indexes=(("owner", _owner),),
)
INGRESSES_VIEW = View(keys.INGRESSES, backends, indexes=(("service", _services_of),))
PODS_VIEW = View(PODS, _Client, form=Form.METADATA, indexes=(("asking", _asking),))


class World:
    """The stores, and what follows for Services when one of them changes.

    Args:
        tell: called for each Service that a change concerns.
    """

    def __init__(self, caches: Caches, rules: Rules, *, tell: Tell) -> None:
        self._caches = caches
        self._rules = rules
        self._tell = tell
        self._views: list[View[Any]] = []
        self._unsubscribe: list[Callable[[], None]] = []
        self.services: Store[Service] = self._acquire(SERVICES_VIEW)
        self.namespaces: Store[Namespace] = self._acquire(NAMESPACES_VIEW)
        self.policies: Store[Existing] = self._acquire(POLICIES_VIEW)
        self._ingresses = self._acquire(INGRESSES_VIEW) if rules.ingress_controller is not None else None
        self._pods = self._acquire(PODS_VIEW) if rules.requires_pods else None

    def _acquire(self, view: View[Any]) -> Store[Any]:
        self._views.append(view)
        return self._caches.acquire(view, needed_at_start=True)

    async def start(self) -> None:
        """Wait for the lists, then listen."""
        stores = (self.services, self.namespaces, self.policies, self._ingresses, self._pods)
        for store in stores:
            if store is not None:
                await store.synced.wait()
        self._unsubscribe += [
            self.services.subscribe(self._service_changed),
            self.policies.subscribe(self._policy_changed),
            self.namespaces.subscribe(self._namespace_changed),
        ]
        if self._ingresses is not None:
            self._unsubscribe.append(self._ingresses.subscribe(self._ingress_changed))
        if self._pods is not None:
            self._unsubscribe.append(self._pods.subscribe(partial(self._pod_changed, self._pods)))

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for view in self._views:
            await self._caches.release(view)

    # --- reading

    def around(self, service: Key, *, routes: Collection[GatewayRoute]) -> Surroundings:
        """What a Service's policies are computed from."""
        found = self._ingresses.by_index("service", service) if self._ingresses is not None else []
        return Surroundings(
            namespaces={key.name: namespace for key, namespace in self.namespaces.items()},
            backends=frozenset(backend for _, ingress in found for backend in ingress if backend.service == service),
            routes=routes,
            has_client=self._has_client,
        )

    def namespace(self, name: str) -> Namespace | None:
        return self.namespaces.get(Key("", name))

    def _has_client(self, namespace: str, label: str) -> bool:
        return self._pods is not None and bool(self._pods.by_index("asking", (namespace, label)))

    # --- listening

    def _service_changed(self, change: Change[Service]) -> None:
        if change.initial or change.old != change.new:
            self._tell(change.key, change.initial)

    def _policy_changed(self, change: Change[Existing]) -> None:
        for policy in (change.old, change.new):
            if policy is not None and (change.initial or change.old != change.new):
                self._tell(policy.owner, change.initial)

    def _namespace_changed(self, change: Change[Namespace]) -> None:
        old, new = change.old, change.new
        if self._state(old) != self._state(new):
            for key, _ in self.services.by_index("namespace", change.key.name):
                self._tell(key, False)
        for key, service in self.services.by_index("letting in", value=True):
            if _lets_in(service, old) != _lets_in(service, new):
                self._tell(key, False)

    def _state(self, namespace: Namespace | None) -> object:
        """What counts of a namespace for the Services in it."""
        return namespace and (namespace.is_terminating, is_handled(namespace, self._rules.namespace_selectors))

    def _ingress_changed(self, change: Change[frozenset[Backend]]) -> None:
        if change.old != change.new:
            for service in _services_of(change.old or frozenset()) | _services_of(change.new or frozenset()):
                self._tell(service, False)

    def _pod_changed(self, pods: Store[_Client], change: Change[_Client]) -> None:
        """Only the first pod with a label and the last one make a difference."""
        namespace = change.key.namespace
        before = change.old.labels if change.old is not None else frozenset()
        after = change.new.labels if change.new is not None else frozenset()
        came = any(len(pods.by_index("asking", (namespace, label))) == 1 for label in after - before)
        went = any(not pods.by_index("asking", (namespace, label)) for label in before - after)
        if came or went:
            for key, _ in self.services.by_index("namespace", namespace):
                self._tell(key, False)
            for key, service in self.services.by_index("letting in", value=True):
                if _lets_in(service, self.namespace(namespace)):
                    self._tell(key, False)


def _lets_in(service: Service, namespace: Namespace | None) -> bool:
    return namespace is not None and not namespace.is_terminating and selects(service, namespace)
