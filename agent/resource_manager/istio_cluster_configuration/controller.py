"""The controller `istio-cluster-configuration`: EnvoyFilters for the DestinationRules of a namespace.

A key is a namespace with DestinationRules. It has at most one EnvoyFilter in each namespace with Istio's ingress
gateways. All kinds are watched only once Istio is installed.
"""

from collections.abc import Iterable
from functools import partial

from agent.resource_manager.context import Context
from agent.resource_manager.istio_cluster_configuration.reconcile import IstioStores, Reconciler
from agent.resource_manager.istio_cluster_configuration.rules import (
    NAME,
    SUFFIX,
    DestinationRule,
    Existing,
    Namespace,
    Service,
)
from gardener import keys
from gardener.api import kinds
from kube.objects import Key
from kube.resources import NAMESPACES, SERVICES
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue_mapped, enqueue_users
from kube.runtime.metrics import controller_limited_objects
from kube.runtime.predicates import changed_or_listed


def _own_namespace(rule: DestinationRule) -> tuple[str, ...]:
    return (rule.key.namespace,)


def _service(rule: DestinationRule) -> tuple[Key, ...]:
    service = rule.service()
    return (service,) if service is not None else ()


_INDEXES = (("namespace", _own_namespace), ("service", _service))
RULES_VIEW = View(kinds.DESTINATION_RULES, DestinationRule.of, indexes=_INDEXES)
SERVICES_VIEW = View(SERVICES, Service.of)
NAMESPACES_VIEW = View(NAMESPACES, Namespace.of)
FILTERS_VIEW = View(kinds.ENVOY_FILTERS, Existing.of, label_selector=f"{keys.MANAGED_BY}={NAME}")


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.istio_cluster_configuration, context.target.caches
    loop = ControlLoop(NAME, kind=NAMESPACES, workers=settings.concurrent_syncs)
    reconciler = Reconciler(context.target.client, context.target_recorder)
    controller_limited_objects.labels(NAME).set_function(lambda: reconciler.limited)

    def begin() -> None:
        rules = loop.watch(caches, RULES_VIEW, enqueue_mapped(_namespace_of_rule, when=changed_or_listed))
        reconciler.stores = IstioStores(
            rules=rules,
            services=loop.watch(caches, SERVICES_VIEW, enqueue_users(partial(_namespaces_for_service, rules))),
            namespaces=loop.watch(
                caches,
                NAMESPACES_VIEW,
                enqueue_users(partial(_namespaces_exporting_to, rules), when=gateways_came_or_went),
            ),
            filters=loop.watch(caches, FILTERS_VIEW, enqueue_mapped(_namespace_of_filter, when=changed_or_listed)),
        )

    loop.when_served(context.target.discovery, (kinds.DESTINATION_RULES, kinds.ENVOY_FILTERS), begin)
    return loop.reconciled_by(reconciler)


def _namespace_of_rule(change: Change[DestinationRule]) -> tuple[Key, ...]:
    return (Key("", change.key.namespace),)


def _namespaces_for_service(rules: Store[DestinationRule], service: Key) -> Iterable[Key]:
    return (Key("", rule.key.namespace) for rule in rules.values_by_index("service", service))


def gateways_came_or_went(change: Change[Namespace]) -> bool:
    """Whether a namespace got its first ingress gateway, or lost its last one."""
    return _has_gateways(change.old) != _has_gateways(change.new)


def _has_gateways(namespace: Namespace | None) -> bool:
    return namespace is not None and namespace.is_ingress and not namespace.is_terminating


def _namespaces_exporting_to(rules: Store[DestinationRule], namespace: Key) -> Iterable[Key]:
    """Namespaces with rules that are exported to this namespace."""
    return {Key("", rule.key.namespace) for rule in rules.values() if rule.export_to.among([namespace.name])}


def _namespace_of_filter(change: Change[Existing]) -> tuple[Key, ...]:
    return (Key("", change.key.name.removesuffix(SUFFIX)),)
