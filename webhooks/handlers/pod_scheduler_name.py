"""pod-scheduler-name: pods that do not ask for a scheduler get the configured one."""

from config.schema_webhooks import PodSchedulerName
from kube.objects import Object
from webhooks.admission import Handler, Mutation, Request
from webhooks.facts import Facts
from webhooks.generic import defaulter
from webhooks.shapes import Fields, child, pod

NAME = "pod-scheduler-name"
PATH = "/webhooks/default-pod-scheduler-name"

_NOBODYS_CHOICE = (None, "", "default-scheduler")
"""The API server's default comes before webhooks are asked."""


class _Spec(Fields):
    scheduler_name: str | None = None


class _Pod(Fields):
    spec: _Spec | None = None


_SHAPE = pod(_Pod)


def set_scheduler(obj: Object, name: str) -> None:
    if (obj.get("spec") or {}).get("schedulerName") in _NOBODYS_CHOICE:
        child(obj, "spec")["schedulerName"] = name


def mutation(settings: PodSchedulerName, _facts: Facts) -> Mutation:
    async def mutate(_: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        set_scheduler(obj, settings.scheduler_name)

    return mutate


def handler(settings: PodSchedulerName, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
