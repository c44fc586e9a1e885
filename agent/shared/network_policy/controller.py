"""The controller `networkpolicy`: NetworkPolicies for the Services of the target cluster.

A key is a Service. It is reconciled when its ports, selector or annotations change, when one of its policies is
touched, and when namespaces, Ingresses, gateways or clients that affect it come and go; see `stores`.
"""

from agent.shared.network_policy.istio import Gateways
from agent.shared.network_policy.reconcile import Reconciler
from agent.shared.network_policy.rules.policies import Rules
from agent.shared.network_policy.stores import PolicyStores
from config.shared import NetworkPolicy
from gardener.api import kinds
from kube.resources import SERVICES
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop
from kube.runtime.metrics import controller_limited_objects
from process.clusters import Cluster

NAME = "networkpolicy"


def declare(settings: NetworkPolicy, *, cluster: Cluster, recorder: EventRecorder) -> ControlLoop:
    """Declare the control loop; `recorder` writes Events about Services."""
    rules = rules_of(settings)
    loop = ControlLoop(NAME, kind=SERVICES, workers=settings.concurrent_syncs)
    stores = PolicyStores(loop, cluster.caches, rules)
    gateways = Gateways(loop, cluster.client, cluster.caches, stores.services)
    if settings.istio_routes:
        loop.when_served(cluster.discovery, (kinds.VIRTUAL_SERVICES, kinds.GATEWAYS), gateways.begin)
    reconciler = Reconciler(
        client=cluster.client,
        stores=stores,
        gateways=gateways,
        rules=rules,
        recorder=recorder,
        others_wait=lambda: loop.queue.waiting > 0,
    )
    controller_limited_objects.labels(NAME).set_function(lambda: reconciler.limited)
    return loop.reconciled_by(reconciler)


def rules_of(settings: NetworkPolicy) -> Rules:
    controller = settings.ingress_controller_selector
    return Rules(
        namespace_selectors=tuple(each.as_object() for each in settings.namespace_selectors),
        ingress_controller=(controller.namespace, controller.pod_selector.as_object()) if controller else None,
        requires_pods=settings.require_matching_pods,
        names_everybody=settings.from_world_peers == "explicit",
    )
