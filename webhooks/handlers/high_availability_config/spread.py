"""Replicas are spread over hosts and zones, strictly where a failure has to be survived."""

from dataclasses import dataclass

from kube.objects import Object
from webhooks.handlers.high_availability_config.affinity import ZONE
from webhooks.handlers.high_availability_config.situation import Situation

HOST = "kubernetes.io/hostname"

_HASH = "pod-template-hash"
_MOST_HOSTS = 3
_OURS = (HOST, ZONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the replicas of one workload are spread."""

    situation: Situation
    replicas: int
    most_replicas: int
    """As many as there may be, if an autoscaler decides."""
    strictly_over_hosts: bool
    even_over_zones: bool
    """Zones may differ by one replica only, however many there are."""
    selector: Object


def over_hosts_strictly(situation: Situation, *, host_spread: bool, several_nodes: bool) -> bool:
    return several_nodes and (host_spread or bool(situation.failure_tolerance))


def constraints(existing: list[Object] | None, spread: Spread) -> list[Object] | None:
    """Those that exist for other topologies, then ours. A single replica has nothing to be spread from."""
    if spread.replicas <= 1:
        return existing
    ours = [_over_hosts(spread)]
    if _spreads_over_zones(spread.situation):
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


def _spreads_over_zones(situation: Situation) -> bool:
    return len(situation.zones) > 1 and situation.failure_tolerance in {None, "zone"}


def _over_hosts(spread: Spread) -> Object:
    constraint = {"topologyKey": HOST, "maxSkew": 1, "labelSelector": spread.selector}
    if spread.strictly_over_hosts:
        fewest = min(_MOST_HOSTS, spread.most_replicas)
        return {**constraint, "whenUnsatisfiable": "DoNotSchedule", "minDomains": fewest}
    return {**constraint, "whenUnsatisfiable": "ScheduleAnyway"}


def _over_zones(spread: Spread) -> Object:
    zones = len(spread.situation.zones)
    uneven = spread.most_replicas >= 2 * zones and not spread.even_over_zones
    return {
        "topologyKey": ZONE,
        "maxSkew": 2 if uneven else 1,
        "minDomains": min(zones, spread.most_replicas),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": spread.selector,
    }
