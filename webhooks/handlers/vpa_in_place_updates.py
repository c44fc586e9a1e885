"""vpa-in-place-updates: let VerticalPodAutoscalers resize pods in place and evict them only if that fails."""

from config.resource_manager.webhooks import Webhook
from gardener import keys
from kube.objects import Object
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.generic import in_place
from webhooks.rules.registration import WRITE, Instance, Rule, without
from webhooks.rules.shapes import METADATA, Shape, child

_EVICTING = (None, "Auto", "Recreate")
_FIELDS = {"metadata": METADATA, "spec": {"updatePolicy": {"updateMode": str}}}
_SHAPE = Shape("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", _FIELDS)


def update_in_place(obj: Object) -> None:
    policy = (obj.get("spec") or {}).get("updatePolicy") or {}
    if policy.get("updateMode") in _EVICTING:
        child(child(obj, "spec"), "updatePolicy")["updateMode"] = "InPlaceOrRecreate"
        child(child(obj, "metadata"), "labels")[keys.VPA_UPDATED_IN_PLACE] = "true"


mutation = in_place(_SHAPE, update_in_place)


WEBHOOK = MutatingWebhook(
    name="vpa-in-place-updates",
    path="/webhooks/vpa-in-place-updates",
    settings=Webhook,
    mutation=mutation,
    entries=(
        Entry(
            rules=(Rule(WRITE, "autoscaling.k8s.io", ("v1",), ("verticalpodautoscalers",)),),
            namespaces=Instance.namespaces,
            objects=without(f"vpa-in-place-updates.{keys.GROUP}/skip"),
            match_policy="Equivalent",
            reinvocation_policy="Never",
        ),
    ),
)
