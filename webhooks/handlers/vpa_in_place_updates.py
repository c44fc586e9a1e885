"""vpa-in-place-updates: VerticalPodAutoscalers resize pods in place and evict them only where that fails."""

from config.schema_webhooks import Webhook
from kube.objects import Object
from webhooks.admission import Handler, Mutation, Request
from webhooks.facts import Facts
from webhooks.generic import defaulter
from webhooks.shapes import Fields, Metadata, Shape, child

NAME = "vpa-in-place-updates"
PATH = "/webhooks/vpa-in-place-updates"

MUTATED = "vpa-in-place-updates.resources.gardener.cloud/mutated"

_EVICTING = (None, "Auto", "Recreate")


class _UpdatePolicy(Fields):
    update_mode: str | None = None


class _Spec(Fields):
    update_policy: _UpdatePolicy | None = None


class _VerticalPodAutoscaler(Fields):
    metadata: Metadata | None = None
    spec: _Spec | None = None


_SHAPE = Shape("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", _VerticalPodAutoscaler)


def update_in_place(obj: Object) -> None:
    policy = (obj.get("spec") or {}).get("updatePolicy") or {}
    if policy.get("updateMode") in _EVICTING:
        child(child(obj, "spec"), "updatePolicy")["updateMode"] = "InPlaceOrRecreate"
        child(child(obj, "metadata"), "labels")[MUTATED] = "true"


def mutation(_settings: Webhook, _facts: Facts) -> Mutation:
    async def mutate(_: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        update_in_place(obj)

    return mutate


def handler(settings: Webhook, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
