"""seccomp-profile: pods without a seccomp profile get the one of the container runtime."""

from config.schema_webhooks import Webhook
from kube.objects import Object
from webhooks.admission import Handler, Mutation, Request
from webhooks.facts import Facts
from webhooks.generic import defaulter
from webhooks.shapes import Fields, child, pod

NAME = "seccomp-profile"
PATH = "/webhooks/seccomp-profile"


class _Profile(Fields):
    type: str | None = None


class _SecurityContext(Fields):
    seccomp_profile: _Profile | None = None


class _Spec(Fields):
    security_context: _SecurityContext | None = None


class _Pod(Fields):
    spec: _Spec | None = None


_SHAPE = pod(_Pod)


def set_profile(obj: Object) -> None:
    """Whatever is beside `type` goes: it would belong to another type."""
    security_context = (obj.get("spec") or {}).get("securityContext") or {}
    if not (security_context.get("seccompProfile") or {}).get("type"):
        child(child(obj, "spec"), "securityContext")["seccompProfile"] = {"type": "RuntimeDefault"}


def mutation(_settings: Webhook, _facts: Facts) -> Mutation:
    async def mutate(_: Request, obj: Object) -> None:
        _SHAPE.demand(obj)
        set_profile(obj)

    return mutate


def handler(settings: Webhook, facts: Facts) -> Handler:
    return defaulter(mutation(settings, facts))
