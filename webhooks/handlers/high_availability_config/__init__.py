"""high-availability-config: set replicas and spread of workloads by the failures that their namespace must survive.

Deployments and StatefulSets get replicas, node affinity, topology spread constraints and tolerations; autoscalers get
bounds that fit. Each rule is a function from the present value of a field to the right one.

Error codes differ from those of the other webhooks, so the handler does, too: missing information is 500, a namespace
that does not exist 404, and an object that cannot be decoded is denied.
"""

from config.resource_manager.webhooks import HighAvailabilityConfig
from gardener.keys import HIGH_AVAILABILITY_PREFIX
from kube.errors import NotFound
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Handler, Refusal, Request
from webhooks.descriptor import Entry, HandlerWebhook
from webhooks.generic import NOTHING_TO_DECODE
from webhooks.handlers.high_availability_config.cluster import ClusterLister, Target
from webhooks.handlers.high_availability_config.rules import (
    ClusterState,
    Requirements,
    highly_available,
    requirements_of,
    with_enough_replicas,
)
from webhooks.rules.registration import WRITE, Rule, having, without
from webhooks.rules.shapes import METADATA, Int32, Shape, Strings, WrongShape
from webhooks.state import NAMESPACES_VIEW, NotCovered, SharedListers

_NODE_SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": str}]}]}
_POD_SPEC = {
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _NODE_SELECTOR}},
    "tolerations": [{"key": str, "effect": str}],
    "topologySpreadConstraints": [{"topologyKey": str, "matchLabelKeys": [str]}],
}
_WORKLOAD_SPEC = {
    "replicas": Int32,
    "selector": {"matchLabels": Strings},
    "template": {"metadata": {"labels": Strings}, "spec": _POD_SPEC},
}
_WORKLOAD_FIELDS = {"metadata": METADATA, "spec": _WORKLOAD_SPEC, "status": Object}
_BOUND_FIELDS = {"minReplicas": Int32, "maxReplicas": Int32}
_HPA = {"metadata": METADATA, "spec": _BOUND_FIELDS, "status": Object}
_HVPA = {"metadata": METADATA, "spec": {"hpa": {"template": {"spec": _BOUND_FIELDS}}}}

_DEPLOYMENT = Shape("apps/v1", "Deployment", _WORKLOAD_FIELDS)
_STATEFUL_SET = Shape("apps/v1", "StatefulSet", _WORKLOAD_FIELDS)
_HPAS = {version: Shape(f"autoscaling/{version}", "HorizontalPodAutoscaler", _HPA) for version in ("v2beta1", "v2")}
_HVPA_SHAPE = Shape("autoscaling.k8s.io/v1alpha1", "Hvpa", _HVPA)

_WORKLOADS = {("apps", "Deployment"): _DEPLOYMENT, ("apps", "StatefulSet"): _STATEFUL_SET}
_BOUNDS = {
    ("autoscaling", "HorizontalPodAutoscaler"): ("spec",),
    ("autoscaling.k8s.io", "Hvpa"): ("spec", "hpa", "template", "spec"),
}


def handler(settings: HighAvailabilityConfig, state: SharedListers) -> Handler:
    state.lister(NAMESPACES_VIEW)
    lister = ClusterLister(settings, state)

    async def handle(request: Request) -> Answer:
        group, _, kind = request.kind
        if (group, kind) not in _WORKLOADS and (group, kind) not in _BOUNDS:
            return Allowed(f"unexpected resource: {kind}.{group}" if group else f"unexpected resource: {kind}")
        try:
            requirements = requirements_of((await state.namespace(request.namespace)).annotations)
            cluster = _cluster_state(request, lister)
        except NotFound as error:
            return Errored(404, str(error))
        except NotCovered as error:
            return Errored(500, str(error))
        try:
            return Changed(request.object, changed(request, requirements, cluster, settings))
        except WrongShape as error:
            return Denied(str(error))
        except Refusal as refusal:
            return refusal.answer

    return handle


def _cluster_state(request: Request, lister: ClusterLister) -> ClusterState:
    """Return the cluster's state for the workload.

    Raises:
        NotCovered: its namespace is not watched.
    """
    group, version, kind = request.kind
    if (group, kind) not in _WORKLOADS:
        return ClusterState()
    return lister.state_for(Target(request.namespace, f"{group}/{version}", kind, request.name))


def changed(
    request: Request, requirements: Requirements, cluster: ClusterState, settings: HighAvailabilityConfig
) -> Object:
    """Return the object of the request with the right values.

    Raises:
        WrongShape: it cannot be decoded.
        Refusal: an annotation is invalid.
    """
    group, version, kind = request.kind
    shape = _shape(group, version, kind)
    if request.object is None:
        raise WrongShape(NOTHING_TO_DECODE)
    shape.check(request.object)
    if (group, kind) in _BOUNDS:
        available = with_enough_replicas(request.object, bounds_at=_BOUNDS[group, kind], requirements=requirements)
    else:
        available = highly_available(
            request.object, kind=kind, requirements=requirements, cluster=cluster, settings=settings
        )
    return _with_status(available, kind)


def _shape(group: str, version: str, kind: str) -> Shape:
    if (group, kind) in _WORKLOADS:
        return _WORKLOADS[group, kind]
    if group != "autoscaling":
        return _HVPA_SHAPE
    if version not in _HPAS:
        raise WrongShape(f'autoscaling version "{version}" in request is not supported')
    return _HPAS[version]


_STATUS = {"StatefulSet": {"replicas": 0, "availableReplicas": 0}, "HorizontalPodAutoscaler": {"desiredReplicas": 0}}


def _with_status(obj: Object, kind: str) -> Object:
    """Add the numbers that the status of each kind has once an API server has processed it.

    The original writes missing ones as zeros whenever it answers, and so does this webhook, for equal answers. In a
    cluster it has no effect: API servers send objects that have them, and take no status from a patch.
    """
    status: Object = obj.get("status") or {}
    missing = {name: zero for name, zero in _STATUS.get(kind, {}).items() if status.get(name) is None}
    return {**obj, "status": {**status, **missing}} if missing else obj


WEBHOOK = HandlerWebhook(
    name="high-availability-config",
    path="/webhooks/high-availability-config",
    settings=HighAvailabilityConfig,
    handler=handler,
    entries=(
        Entry(
            rules=(
                Rule(WRITE, "apps", ("v1",), ("deployments", "statefulsets")),
                Rule(WRITE, "autoscaling", ("v2beta1", "v2"), ("horizontalpodautoscalers",)),
                Rule(WRITE, "autoscaling.k8s.io", ("v1alpha1",), ("hvpas",)),
            ),
            namespaces=lambda instance: instance.namespaces() & having(f"{HIGH_AVAILABILITY_PREFIX}consider", "true"),
            objects=lambda instance: instance.managed() & without(f"{HIGH_AVAILABILITY_PREFIX}skip"),
            match_policy="Equivalent",
        ),
    ),
)
