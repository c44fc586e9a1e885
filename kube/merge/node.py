"""Node: Kubernetes fills in the addresses of its Pods, its machine, and taints for its condition."""

from kube.merge.filled_in import kept_if_omitted
from kube.merge.options import MergeOptions
from kube.objects import Object
from kube.paths import at, mappings_at, with_value

_FILLED_IN = ("podCIDR", "podCIDRs", "providerID")
_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def merge(result: Object, live: Object, _options: MergeOptions) -> Object:
    for name in _FILLED_IN:
        result = kept_if_omitted(result, live, "spec", name)
    wanted = at(result, "spec", "taints") or []
    if not isinstance(wanted, list) or not all(isinstance(taint, dict) for taint in wanted):
        return result
    taints = _overlaid(mappings_at(live, "spec", "taints"), wanted)
    return with_value(result, ("spec", "taints"), taints) if taints else result


def _overlaid(live: list[Object], wanted: list[Object]) -> list[Object]:
    """Taints in the order of the live Node, which others rewrite."""
    known = {_identity(taint): taint for taint in wanted}
    kept = [
        known.pop(_identity(taint), taint)
        for taint in live
        if _identity(taint) in known or str(taint.get("key")).startswith(_TAINTS)
    ]
    return [*kept, *known.values()]


def _identity(taint: Object) -> tuple[str, str]:
    return str(taint.get("key")), str(taint.get("effect"))
