"""On which Nodes the DaemonSet controller wants a pod of a DaemonSet."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kube.objects import Object, mapping, mappings, string_map, text

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_IMPLICIT = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
_IMPLICIT_ON_HOST_NETWORK = (
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"},
)
_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What a pod template says about Nodes."""

    node_name: str
    node_selector: Mapping[str, str]
    terms: Sequence[Object] | None
    """Of the required node affinity, one of which has to match; None: there is none."""
    tolerations: Sequence[Object]
    on_host_network: bool


def placement_of(pod_spec: Mapping[str, Any]) -> Placement:
    affinity = mapping(mapping(pod_spec.get("affinity")).get("nodeAffinity"))
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return Placement(
        node_name=text(pod_spec.get("nodeName")),
        node_selector=string_map(pod_spec.get("nodeSelector")),
        terms=None if required is None else mappings(mapping(required).get("nodeSelectorTerms")),
        tolerations=mappings(pod_spec.get("tolerations")),
        on_host_network=bool(pod_spec.get("hostNetwork")),
    )


def runs_on(placement: Placement, *, name: str, labels: Mapping[str, str], taints: Iterable[Object]) -> bool:
    """Whether the Node with this name, these labels and taints is to have a pod."""
    if placement.node_name not in {"", name}:
        return False
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    if placement.terms is not None and not any(_matches(term, name, labels) for term in placement.terms):
        return False
    tolerations = [*placement.tolerations, *_IMPLICIT]
    if placement.on_host_network:
        tolerations += _IMPLICIT_ON_HOST_NETWORK
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.get("effect") in _KEEPS_AWAY
    )


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case _:
            return False


def _matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """A term that says nothing, or can't be understood, matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_matches_expression(each, labels) for each in expressions) and all(
        _matches_field(each, name) for each in fields
    )


def _matches_field(field: Object, name: str) -> bool:
    values = field.get("values") or []
    if field.get("key") != "metadata.name" or len(values) != 1:
        return False
    match field.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case _:
            return False


def _matches_expression(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key") or "", expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return bool(values) and labels.get(key) not in values
        case "Exists":
            return not values and key in labels
        case "DoesNotExist":
            return not values and key not in labels
        case "Gt":
            return _compares(labels.get(key), values, lambda has, bound: has > bound)
        case "Lt":
            return _compares(labels.get(key), values, lambda has, bound: has < bound)
        case _:
            return False


def _compares(value: str | None, bounds: Sequence[str], holds: Callable[[int, int], bool]) -> bool:
    """Of whole numbers; anything else compares as false."""
    if value is None or len(bounds) != 1 or not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bounds[0]):
        return False
    return holds(int(value), int(bounds[0]))
