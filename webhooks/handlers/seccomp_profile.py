"""seccomp-profile: set the profile of the container runtime in pods without a seccomp profile."""

from config.resource_manager.webhooks import Webhook
from gardener import keys
from kube.objects import Object
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.generic import in_place
from webhooks.rules.registration import PODS, Instance, without
from webhooks.rules.shapes import child, pod

_SHAPE = pod({"spec": {"securityContext": {"seccompProfile": {"type": str}}}})


def set_profile(obj: Object) -> None:
    """Set the profile; fields next to `type` are removed, since they would belong to another type."""
    security_context = (obj.get("spec") or {}).get("securityContext") or {}
    if not (security_context.get("seccompProfile") or {}).get("type"):
        child(child(obj, "spec"), "securityContext")["seccompProfile"] = {"type": "RuntimeDefault"}


mutation = in_place(_SHAPE, set_profile)


WEBHOOK = MutatingWebhook(
    name="seccomp-profile",
    path="/webhooks/seccomp-profile",
    settings=Webhook,
    mutation=mutation,
    entries=(
        Entry(
            rules=(PODS,),
            namespaces=Instance.namespaces,
            objects=lambda instance: without(f"seccompprofile.{keys.GROUP}/skip") & instance.not_ours(),
        ),
    ),
)
