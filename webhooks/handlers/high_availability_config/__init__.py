"""high-availability-config: workloads get as many replicas, spread in such a way, as their namespace must survive.

Deployments and StatefulSets get replicas, node affinity, topology spread constraints and tolerations; autoscalers get
bounds that fit. Each rule is a function from the present value of a field to the right one, in a module of its own.

Errors have codes of their own here, so that the handler is not made like those of the other webhooks: what can't be
found out is 500, and an object that can't be decoded is denied.
"""

from config.schema_webhooks import HighAvailabilityConfig
from kube.errors import NotFound
from kube.objects import Object
from webhooks.admission import Allowed, Answer, Changed, Denied, Errored, Handler, Refusal, Request
from webhooks.facts import Facts, NotCovered, Target
from webhooks.generic import NOTHING_TO_DECODE
from webhooks.handlers.high_availability_config import fields, scaling, status, workload
from webhooks.handlers.high_availability_config.situation import Situation, of_namespace
from webhooks.handlers.high_availability_config.workload import Surroundings
from webhooks.shapes import Shape, WrongShape

NAME = "high-availability-config"
PATH = "/webhooks/high-availability-config"

_WORKLOADS = {("apps", "Deployment"): fields.DEPLOYMENT, ("apps", "StatefulSet"): fields.STATEFUL_SET}
_BOUNDS = {
    ("autoscaling", "HorizontalPodAutoscaler"): ("spec",),
    ("autoscaling.k8s.io", "Hvpa"): ("spec", "hpa", "template", "spec"),
}


def handler(settings: HighAvailabilityConfig, facts: Facts) -> Handler:
    async def handle(request: Request) -> Answer:
        group, _, kind = request.kind
        if (group, kind) not in _WORKLOADS and (group, kind) not in _BOUNDS:
            return Allowed(f"unexpected resource: {kind}.{group}" if group else f"unexpected resource: {kind}")
        try:
            situation = of_namespace((await facts.namespace(request.namespace)).annotations)
            surroundings = _surroundings(request, settings, facts)
        except (NotFound, NotCovered) as error:
            return Errored(500, str(error))
        try:
            return Changed(request.object, changed(request, situation, surroundings, settings))
        except WrongShape as error:
            return Denied(str(error))
        except Refusal as refusal:
            return refusal.answer

    return handle


def _surroundings(request: Request, settings: HighAvailabilityConfig, facts: Facts) -> Surroundings:
    """Raises: NotCovered."""
    group, version, kind = request.kind
    if (group, kind) not in _WORKLOADS:
        return Surroundings()
    return Surroundings(
        max_replicas=facts.max_replicas(Target(request.namespace, f"{group}/{version}", kind, request.name)),
        several_nodes=settings.behavior != "latest" or facts.several_nodes(),
    )


def changed(
    request: Request, situation: Situation, surroundings: Surroundings, settings: HighAvailabilityConfig
) -> Object:
    """The object of the request as it should be.

    Raises:
        WrongShape: it can't be decoded.
        Refusal: an annotation makes no sense.
    """
    group, version, kind = request.kind
    shape = _shape(group, version, kind)
    if request.object is None:
        raise WrongShape(NOTHING_TO_DECODE)
    shape.check(request.object)
    if (group, kind) in _BOUNDS:
        available = scaling.highly_available(request.object, bounds_at=_BOUNDS[group, kind], situation=situation)
    else:
        available = workload.highly_available(
            request.object, kind=kind, situation=situation, surroundings=surroundings, settings=settings
        )
    return status.completed(available, kind)


def _shape(group: str, version: str, kind: str) -> Shape:
    if (group, kind) in _WORKLOADS:
        return _WORKLOADS[group, kind]
    if group != "autoscaling":
        return fields.HVPA
    if version not in fields.HPAS:
        raise WrongShape(f'autoscaling version "{version}" in request is not supported')
    return fields.HPAS[version]
