"""Watches of the cluster, and the Services that a change affects."""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TypeVar

from agent.shared.network_policy.rules.policies import (
    GatewayRoute,
    Rules,
    Surroundings,
    is_handled,
    labels_of_clients,
    selects,
)
from agent.shared.network_policy.rules.projections import (
    Backends,
    Existing,
    Namespace,
    Service,
    backends,
    client_labels,
)
from gardener import keys
from kube.objects import Key, Object, key
from kube.resources import INGRESSES, NAMESPACES, NETWORK_POLICIES, PODS, SERVICES
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Form
from kube.runtime.fan_out import Changes
from kube.runtime.loop import ControlLoop, enqueue, enqueue_affected, enqueue_mapped, enqueue_users_of
from kube.runtime.predicates import changed_or_listed

T = TypeVar("T")


def _in_namespace(service: Service) -> tuple[str, ...]:
    return (service.key.namespace,)


def _letting_in(service: Service) -> tuple[bool, ...]:
    return (True,) if service.settings.namespace_selectors else ()


def _asked_for(service: Service) -> frozenset[str]:
    return frozenset(labels_of_clients(service))


def _exposed(found: Backends) -> Iterable[Key]:
    return found.of


def _owner(policy: Existing) -> tuple[Key, ...]:
    return (policy.owner,)


def _asking(pod: "_Client") -> Iterator[tuple[str, str]]:
    return ((pod.namespace, label) for label in pod.labels)


class _Client:
    """A pod with labels that request access."""

    __slots__ = ("labels", "namespace")

    def __init__(self, obj: Object) -> None:
        self.namespace = key(obj).namespace
        self.labels = client_labels(obj)


SERVICES_VIEW = View(
    SERVICES,
    Service.of,
    indexes=(("namespace", _in_namespace), ("letting in", _letting_in), ("requested", _asked_for)),
    most=128 << 10,
)
NAMESPACES_VIEW = View(NAMESPACES, Namespace.of, form=Form.METADATA)
POLICIES_VIEW = View(
    NETWORK_POLICIES,
    Existing.of,
    label_selector=f"{keys.POLICY_SERVICE_NAME},{keys.POLICY_SERVICE_NAMESPACE}",
    indexes=(("owner", _owner),),
)
INGRESSES_VIEW = View(INGRESSES, backends, indexes=(("service", _exposed),), most=64 << 10)
PODS_VIEW = View(PODS, _Client, form=Form.METADATA, indexes=(("asking", _asking),))


class PolicyStores:
    """Caches for policies; Ingresses and pods are watched only if the rules need them."""

    def __init__(self, loop: ControlLoop, caches: Caches, rules: Rules) -> None:
        self._rules = rules
        self.services = loop.watch(caches, SERVICES_VIEW, enqueue(when=changed_or_listed))
        self.namespaces = loop.watch(caches, NAMESPACES_VIEW, enqueue_affected(self._services_for_namespace))
        self.policies = loop.watch(
            caches, POLICIES_VIEW, enqueue_mapped(self._services_of_policy, when=changed_or_listed)
        )
        self._ingresses = (
            loop.watch(caches, INGRESSES_VIEW, enqueue_affected(self._services_of_ingress))
            if rules.ingress_controller is not None
            else None
        )
        self._pods = (
            loop.watch(caches, PODS_VIEW, enqueue_users_of(self._came_or_went, self._services_asked_for))
            if rules.requires_pods
            else None
        )
        self.deleted: dict[Key, str] = {}
        """Deleted policies with their uids, until the watch reports the deletion."""
        self.written: dict[Key, bytes] = {}
        """Policies that are being written, with their digests: the resulting change is ignored."""
        self.waiting: dict[Key, Key] = {}
        """Policies whose name another Service holds, with the Service that waits for it."""

    # --- reading

    def around(self, service: Key, *, existing: Iterable[Key], routes: Collection[GatewayRoute]) -> Surroundings:
        """Input for the policies of a Service."""
        found = self._ingresses.values_by_index("service", service) if self._ingresses is not None else []
        return Surroundings(
            namespaces={key.name: namespace for key, namespace in self.namespaces.items()},
            backends=frozenset().union(*(backends.of[service] for backends in found)),
            routes=routes,
            served=frozenset(policy.namespace for policy in existing),
            has_client=lambda namespace, label: self._clients(namespace, label) > 0,
        )

    def namespace(self, name: str) -> Namespace | None:
        return self.namespaces.get(Key("", name))

    def _clients(self, namespace: str, label: str) -> int:
        return self._pods.count("asking", (namespace, label)) if self._pods is not None else 0

    # --- mapping events to Services

    def _services_of_policy(self, change: Change[Existing]) -> Iterator[Key]:
        name, new = change.key, change.new
        if new is None or new.uid != self.deleted.get(name):
            self.deleted.pop(name, None)
        waiting = self.waiting.pop(name, None)
        if waiting is not None:
            yield waiting
        if new is not None and self.written.get(name) == new.digest:
            return
        for policy in (change.old, new):
            if policy is not None:
                yield policy.owner

    def _services_for_namespace(self, namespace: Key, changes: Changes[Namespace]) -> Iterator[Key]:
        if changes.differ(self._state):
            yield from self._services_in(namespace.name)
        for name, service in self.services.by_index("letting in", value=True):
            if changes.differ(partial(_lets_in, service)):
                yield name

    def _services_of_ingress(self, ingress: Key, changes: Changes[Backends]) -> Iterable[Key]:
        return leading_to(self.services, ingress.namespace, changes, _exposed)

    def _state(self, namespace: Namespace | None) -> object:
        """Fields of a namespace that count for the Services in it."""
        return namespace and (namespace.is_terminating, is_handled(namespace, self._rules.namespace_selectors))

    def _came_or_went(self, change: Change[_Client]) -> Iterator[tuple[str, str]]:
        """Labels of which the first pod has come or the last one has gone."""
        namespace = change.key.namespace
        before = change.old.labels if change.old is not None else frozenset()
        after = change.new.labels if change.new is not None else frozenset()
        came = {label for label in after - before if self._clients(namespace, label) == 1}
        went = {label for label in before - after if not self._clients(namespace, label)}
        return ((namespace, label) for label in came | went)

    def _services_asked_for(self, requested: tuple[str, str]) -> Iterator[Key]:
        namespace, label = requested
        for name, service in self.services.by_index("requested", label):
            if name.namespace == namespace or _lets_in(service, self.namespace(namespace)):
                yield name

    def _services_in(self, namespace: str) -> Iterable[Key]:
        return self.services.keys_by_index("namespace", namespace)


def leading_to(
    services: Store[Service], namespace: str, changes: Changes[T], named: Callable[[T], Iterable[Key]]
) -> Iterable[Key]:
    """Services of the namespace that an object names, or has named; one that comes later has a watch."""
    if changes.are_many:
        return services.keys_by_index("namespace", namespace)
    found = dict.fromkeys(name for state in changes.states() for name in named(state))
    return [name for name in found if services.get(name) is not None]


def _lets_in(service: Service, namespace: Namespace | None) -> bool:
    return namespace is not None and not namespace.is_terminating and selects(service, namespace)
