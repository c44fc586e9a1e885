"""Where pods run: in the zones of their namespace, and spread over hosts and zones, strictly where a failure has to be
survived; and how long they tolerate a Node that fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from config.resource_manager.webhooks import HighAvailabilityConfig
from kube.objects import Object
from webhooks.admission import Denied, Refusal
from webhooks.handlers.high_availability_config.rules.requirements import Requirements

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

MOST_VALUES = 1000
"""Zones in all alternatives of a node affinity."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_EXECUTE = "NoExecute"
_HASH = "pod-template-hash"
_MOST_HOSTS = 3
_OURS = (HOST, ZONE)


# --- zones


def needs_zones(requirements: Requirements) -> bool:
    return bool(requirements.zones) and (requirements.failure_tolerance is not None or requirements.zone_pinning)


def with_zones(affinity: Object | None, zones: Sequence[str]) -> Object:
    """The affinity, with the zones instead of all it said about zones, in each of its alternatives.

    Raises: Refusal: there are too many.
    """
    affinity = affinity or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    alternatives = required.get("nodeSelectorTerms") or [{}]
    if len(alternatives) * len(zones) > MOST_VALUES:
        product = f"{len(alternatives)} nodeSelectorTerms for {len(zones)} zones of the namespace"
        raise Refusal(Denied(f"{product} are too many: their product may be {MOST_VALUES}"))
    terms = [_term(term, zones) for term in alternatives]
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: {**required, "nodeSelectorTerms": terms}}}


def _term(term: Object, zones: Sequence[str]) -> Object:
    others = [expression for expression in term.get("matchExpressions") or () if expression.get("key") != ZONE]
    in_zones = {"key": ZONE, "operator": "In", "values": list(zones)}
    return {**term, "matchExpressions": [*others, in_zones]}


# --- spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    requirements: Requirements
    replicas: int
    most_replicas: int
    """As many as there may be, if an autoscaler decides."""
    strictly_over_hosts: bool
    even_over_zones: bool
    """Zones may differ by one replica only, however many there are."""
    selector: Object


def over_hosts_strictly(requirements: Requirements, *, host_spread: bool, several_nodes: bool) -> bool:
    return several_nodes and (host_spread or bool(requirements.failure_tolerance))


def constraints(existing: list[Object] | None, spread: Spread) -> list[Object] | None:
    """Those that exist for other topologies, then ours. A single replica has nothing to be spread from."""
    if spread.replicas <= 1:
        return existing
    ours = [_over_hosts(spread)]
    if _spreads_over_zones(spread.requirements):
        ours.append(_over_zones(spread))
    return [constraint for constraint in existing or () if constraint.get("topologyKey") not in _OURS] + ours


def with_hash_key(existing: list[Object] | None) -> list[Object] | None:
    """Each counts pods of the same rollout only; an alternative to the webhook pod-topology-spread-constraints."""
    return existing and [
        constraint
        if _HASH in (keys := constraint.get("matchLabelKeys") or [])
        else {**constraint, "matchLabelKeys": [*keys, _HASH]}
        for constraint in existing
    ]


def _spreads_over_zones(requirements: Requirements) -> bool:
    return len(requirements.zones) > 1 and requirements.failure_tolerance in {None, "zone"}


def _over_hosts(spread: Spread) -> Object:
    constraint = {"topologyKey": HOST, "maxSkew": 1, "labelSelector": spread.selector}
    if spread.strictly_over_hosts:
        fewest = min(_MOST_HOSTS, spread.most_replicas)
        return {**constraint, "whenUnsatisfiable": "DoNotSchedule", "minDomains": fewest}
    return {**constraint, "whenUnsatisfiable": "ScheduleAnyway"}


def _over_zones(spread: Spread) -> Object:
    zones = len(spread.requirements.zones)
    uneven = spread.most_replicas >= 2 * zones and not spread.even_over_zones
    return {
        "topologyKey": ZONE,
        "maxSkew": 2 if uneven else 1,
        "minDomains": min(zones, spread.most_replicas),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": spread.selector,
    }


# --- tolerations


def with_tolerations(existing: list[Object] | None, settings: HighAvailabilityConfig) -> list[Object] | None:
    """A toleration of everything is no decision about these two, and they are added beside it."""
    defaults = {
        NOT_READY: settings.default_not_ready_toleration_seconds,
        UNREACHABLE: settings.default_unreachable_toleration_seconds,
    }
    missing = [
        {"key": key, "operator": "Exists", "effect": _NO_EXECUTE, "tolerationSeconds": seconds}
        for key, seconds in defaults.items()
        if seconds is not None and not _is_tolerated(existing or (), key)
    ]
    return [*(existing or ()), *missing] if missing else existing


def _is_tolerated(tolerations: list[Object] | tuple[()], key: str) -> bool:
    return any(
        toleration.get("key") == key and (toleration.get("effect") or _NO_EXECUTE) == _NO_EXECUTE
        for toleration in tolerations
    )
