"""pod-topology-spread-constraints: spread pods only among those of their own ReplicaSet.

Otherwise pods of the old one would count during a rollout, and leave an uneven spread when they are gone.
"""

from config.resource_manager.webhooks import Webhook
from gardener import keys
from kube.objects import Object, labels
from webhooks.descriptor import Entry, MutatingWebhook
from webhooks.generic import in_place
from webhooks.rules.registration import PODS, Instance, without
from webhooks.rules.shapes import METADATA, Strings, child, pod

HASH = "pod-template-hash"

_SELECTOR = {"matchLabels": Strings, "matchExpressions": [{"key": str, "operator": str}]}
_CONSTRAINT = {"labelSelector": _SELECTOR, "matchLabelKeys": [str]}
_SHAPE = pod({"metadata": METADATA, "spec": {"topologySpreadConstraints": [_CONSTRAINT]}})


def select_own_hash(obj: Object) -> None:
    """Select the hash in all constraints that do not select it already."""
    if HASH not in labels(obj):
        return
    own = labels(obj)[HASH] or ""
    for constraint in (obj.get("spec") or {}).get("topologySpreadConstraints") or ():
        if _selects_hash(constraint.get("labelSelector") or {}):
            continue
        child(child(constraint, "labelSelector"), "matchLabels")[HASH] = own
        _drop_key(constraint)


def _selects_hash(selector: Object) -> bool:
    return HASH in (selector.get("matchLabels") or ()) or any(
        expression.get("key") == HASH and expression.get("operator") == "In"
        for expression in selector.get("matchExpressions") or ()
    )


def _drop_key(constraint: Object) -> None:
    """Drop the key from `matchLabelKeys`: the API server forbids it both there and in the selector."""
    keys = constraint.get("matchLabelKeys") or ()
    if HASH in keys:
        others = [name for name in keys if name != HASH]
        if others:
            constraint["matchLabelKeys"] = others
        else:
            del constraint["matchLabelKeys"]


mutation = in_place(_SHAPE, select_own_hash)


WEBHOOK = MutatingWebhook(
    name="pod-topology-spread-constraints",
    path="/webhooks/pod-topology-spread-constraints",
    settings=Webhook,
    mutation=mutation,
    entries=(
        Entry(
            rules=(PODS,),
            namespaces=Instance.namespaces,
            objects=lambda instance: (
                instance.managed() & instance.not_ours() & without(f"topology-spread-constraints.{keys.GROUP}/skip")
            ),
        ),
    ),
)
