"""Right value of each field, by the failures that a namespace and an object must survive.

An absent failure tolerance differs from an empty one: in a namespace without it everything is spread over zones, if
there are several; in one where it is empty, no failure has to be survived.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from config.resource_manager.webhooks import HighAvailabilityConfig
from gardener import keys
from kube.objects import Object, annotations, is_truthy, labels
from kube.paths import mapping_at, with_value
from webhooks.admission import Denied, Refusal
from webhooks.rules.values import integer

# --- what is required, by annotations


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """Requirements of a whole namespace."""

    failure_tolerance: str | None = None
    """`node`, `zone`, empty for none, None if unspecified."""
    zones: tuple[str, ...] = ()
    zone_pinning: bool = False


def requirements_of(annotations: Mapping[str, str]) -> Requirements:
    zones = {zone.strip() for zone in annotations.get(keys.HIGH_AVAILABILITY_ZONES, "").split(",")} - {""}
    return Requirements(
        failure_tolerance=annotations.get(keys.HIGH_AVAILABILITY_FAILURE_TOLERANCE),
        zones=tuple(sorted(zones)),
        zone_pinning=is_truthy(annotations.get(keys.HIGH_AVAILABILITY_ZONE_PINNING)),
    )


# --- replicas: two, or one for a controller where no failure has to be survived


_CONTROLLER = "controller"
_MOST = 2**31 - 1


def needed_replicas(obj: Object, current: int | None, *, failure_tolerance: str | None) -> int | None:
    """Return the needed replicas; None if the number stays: the object is hibernated, or its type of component unknown.

    Raises:
        Refusal: the number in the annotation is invalid.
    """
    component_type = labels(obj).get(keys.HIGH_AVAILABILITY_TYPE)
    if not current or not component_type:
        return None
    override = annotations(obj).get(keys.HIGH_AVAILABILITY_REPLICAS)
    if override:
        return _parsed(override)
    return 1 if failure_tolerance == "" and component_type == _CONTROLLER else 2


def replicas_of_workload(current: int | None, needed: int | None, *, is_scaled: bool) -> int | None:
    """Return the replicas to set; only an autoscaler may keep more than needed."""
    if current is None or needed is None:
        return current
    return max(current, needed) if is_scaled else needed


def _parsed(text: str) -> int:
    where = f'annotation "{keys.HIGH_AVAILABILITY_REPLICAS}"'
    try:
        number = integer(text, function="Atoi")
    except ValueError as error:
        raise Refusal(Denied(f"{where}: {error}")) from None
    if not 0 <= number <= _MOST:
        raise Refusal(Denied(f"{where}: must be between 0 and {_MOST}, got {number}"))
    return number


def with_enough_replicas(obj: Object, *, bounds_at: tuple[str, ...], requirements: Requirements) -> Object:
    """Return an autoscaler with the right bounds; `bounds_at` is the path of `minReplicas` and `maxReplicas`.

    Raises:
        Refusal: an annotation is invalid.
    """
    bounds = mapping_at(obj, *bounds_at)
    lowest = needed_replicas(obj, bounds.get("minReplicas"), failure_tolerance=requirements.failure_tolerance)
    return obj if lowest is None else with_value(obj, bounds_at, with_bounds(bounds, lowest))


def with_bounds(spec: Object, needed: int) -> Object:
    """Raise an upper bound below the lower one to the needed number, and not further.

    So the API server reports contradictory bounds of a user.
    """
    lowest = spec["minReplicas"]
    bounds = {}
    if lowest < needed:
        bounds["minReplicas"] = lowest = needed
    if (spec.get("maxReplicas") or 0) < lowest:
        bounds["maxReplicas"] = needed
    return {**spec, **bounds}


# --- where pods run, and how long they tolerate a Node that fails


HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"

MOST_VALUES = 1000
"""Maximum number of zones in all alternatives of a node affinity."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_EXECUTE = "NoExecute"
_HASH = "pod-template-hash"
_MOST_HOSTS = 3
_OURS = (HOST, ZONE)


# --- zones


def needs_zones(requirements: Requirements) -> bool:
    return bool(requirements.zones) and (requirements.failure_tolerance is not None or requirements.zone_pinning)


def with_zones(affinity: Object | None, zones: Sequence[str]) -> Object:
    """Return the affinity, with the zones in place of all its terms about zones, in each alternative.

    Raises:
        Refusal: there are too many.
    """
    affinity = affinity or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    alternatives = required.get("nodeSelectorTerms") or [{}]
    if len(alternatives) * len(zones) > MOST_VALUES:
        product = f"{len(alternatives)} nodeSelectorTerms for {len(zones)} zones of the namespace"
        raise Refusal(Denied(f"{product} are too many; the limit is {MOST_VALUES}"))
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
    """Maximum number of replicas, if an autoscaler decides."""
    strictly_over_hosts: bool
    even_over_zones: bool
    """Whether zones may differ only by one replica, for any number of replicas."""
    selector: Object


def over_hosts_strictly(requirements: Requirements, *, host_spread: bool, several_nodes: bool) -> bool:
    return several_nodes and (host_spread or bool(requirements.failure_tolerance))


def spread_constraints(existing: list[Object] | None, spread: Spread) -> list[Object] | None:
    """Return existing constraints for other topologies, then ours. A single replica cannot be spread."""
    if spread.replicas <= 1:
        return existing
    ours = [_over_hosts(spread)]
    if _spreads_over_zones(spread.requirements):
        ours.append(_over_zones(spread))
    return [constraint for constraint in existing or () if constraint.get("topologyKey") not in _OURS] + ours


def with_hash_key(existing: list[Object] | None) -> list[Object] | None:
    """Count only pods of the same rollout in each; an alternative to the webhook pod-topology-spread-constraints."""
    return existing and [
        constraint
        if _HASH in (present := constraint.get("matchLabelKeys") or [])
        else {**constraint, "matchLabelKeys": [*present, _HASH]}
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
    """Add the two default tolerations, also next to a toleration of everything, which does not decide about them."""
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


# --- a Deployment or StatefulSet, rebuilt with these values


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    max_replicas: int | None = None
    """Maximum replicas of its autoscaler; None if there is none."""
    several_nodes: bool = True


def highly_available(
    obj: Object, *, kind: str, requirements: Requirements, cluster: ClusterState, settings: HighAvailabilityConfig
) -> Object:
    """Return a workload with the right values.

    Raises:
        Refusal: an annotation is invalid.
    """
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    wanted = _replicas(obj, requirements, cluster)
    constraints = _constraints(
        obj, kind=kind, replica_count=wanted or 0, requirements=requirements, cluster=cluster, settings=settings
    )
    changed_pod = {
        **pod,
        **_unless_same(pod, "affinity", _affinity(pod, requirements)),
        **_unless_same(pod, "tolerations", with_tolerations(pod.get("tolerations"), settings)),
        **_unless_same(pod, "topologySpreadConstraints", constraints),
    }
    changed_template = {**template, **_unless_same(template, "spec", changed_pod or template.get("spec"))}
    changed_spec = {
        **spec,
        **_unless_same(spec, "replicas", wanted),
        **_unless_same(spec, "template", changed_template or spec.get("template")),
    }
    return {**obj, **_unless_same(obj, "spec", changed_spec or obj.get("spec"))}


def _unless_same(parent: Object, field: str, value: object) -> Object:
    """Return the field only if its value differs: absent fields stay absent."""
    return {} if parent.get(field) == value else {field: value}


def _replicas(obj: Object, requirements: Requirements, cluster: ClusterState) -> int | None:
    current: int | None = (obj.get("spec") or {}).get("replicas")
    needed = needed_replicas(obj, current, failure_tolerance=requirements.failure_tolerance)
    return replicas_of_workload(current, needed, is_scaled=cluster.max_replicas is not None)


def _affinity(pod: Object, requirements: Requirements) -> Object | None:
    existing: Object | None = pod.get("affinity")
    return with_zones(existing, requirements.zones) if needs_zones(requirements) else existing


def _constraints(
    obj: Object,
    *,
    kind: str,
    replica_count: int,
    requirements: Requirements,
    cluster: ClusterState,
    settings: HighAvailabilityConfig,
) -> list[Object] | None:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    latest, is_stateful_set = settings.behavior == "latest", kind == "StatefulSet"
    wanted = spread_constraints(
        (template.get("spec") or {}).get("topologySpreadConstraints"),
        Spread(
            requirements=requirements,
            replicas=replica_count,
            most_replicas=max(replica_count, cluster.max_replicas or 0),
            strictly_over_hosts=over_hosts_strictly(
                requirements,
                host_spread=is_truthy(annotations(obj).get(keys.HIGH_AVAILABILITY_HOST_SPREAD)),
                several_nodes=cluster.several_nodes,
            ),
            even_over_zones=latest,
            selector=_selector(spec, template, prefer_own=latest and is_stateful_set),
        ),
    )
    return with_hash_key(wanted) if latest and not is_stateful_set else wanted


def _selector(spec: Object, template: Object, *, prefer_own: bool) -> Object:
    """Select by all labels of the pods; the workload's own selector stays without new ones, which old pods lack."""
    if prefer_own and spec.get("selector"):
        return deepcopy(spec["selector"])
    return {"matchLabels": dict(labels(template))} if labels(template) else {}
