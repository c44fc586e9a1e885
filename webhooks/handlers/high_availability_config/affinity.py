"""Pods stay in the zones of their namespace."""

from collections.abc import Sequence

from kube.objects import Object
from webhooks.handlers.high_availability_config.situation import Situation

ZONE = "topology.kubernetes.io/zone"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def binds(situation: Situation) -> bool:
    return bool(situation.zones) and (situation.failure_tolerance is not None or situation.zone_pinning)


def with_zones(affinity: Object | None, zones: Sequence[str]) -> Object:
    """The affinity, with the zones instead of all it said about zones, in each of its alternatives."""
    affinity = affinity or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    terms = [_term(term, zones) for term in required.get("nodeSelectorTerms") or [{}]]
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: {**required, "nodeSelectorTerms": terms}}}


def _term(term: Object, zones: Sequence[str]) -> Object:
    others = [expression for expression in term.get("matchExpressions") or () if expression.get("key") != ZONE]
    in_zones = {"key": ZONE, "operator": "In", "values": list(zones)}
    return {**term, "matchExpressions": [*others, in_zones]}
