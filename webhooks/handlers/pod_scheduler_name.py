"""pod-scheduler-name: set the configured scheduler in pods that request none."""

from config.resource_manager.webhooks import PodSchedulerName
from kube.objects import Object
from webhooks.admission import Mutation, Request
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.rules.registration import PODS, Instance
from webhooks.rules.shapes import child, pod
from webhooks.state import SharedListers

_NO_CHOICE = (None, "", "default-scheduler")
"""The API server sets its default before it calls webhooks."""

_SHAPE = pod({"spec": {"schedulerName": str}})


def set_scheduler(obj: Object, name: str) -> None:
    if (obj.get("spec") or {}).get("schedulerName") in _NO_CHOICE:
        child(obj, "spec")["schedulerName"] = name


def mutation(settings: PodSchedulerName, _state: SharedListers) -> Mutation:
    async def mutate(_: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        set_scheduler(obj, settings.scheduler_name)

    return mutate


WEBHOOK = MutatingWebhook(
    name="pod-scheduler-name",
    path="/webhooks/default-pod-scheduler-name",
    settings=PodSchedulerName,
    mutation=mutation,
    entries=(Entry(rules=(PODS,), objects=Instance.not_ours, failure_policy="Ignore"),),
)
