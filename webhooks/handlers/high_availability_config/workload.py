"""A Deployment or StatefulSet, put together anew around the values that the rules change."""

from copy import deepcopy
from dataclasses import dataclass

from config.schema_webhooks import HighAvailabilityConfig
from kube.objects import Object, annotations, is_truthy, labels
from webhooks.handlers.high_availability_config import affinity, replicas, spread, tolerations
from webhooks.handlers.high_availability_config.situation import HOST_SPREAD, Situation


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known beside a workload and its namespace."""

    max_replicas: int | None = None
    """As many replicas as an autoscaler may make of it; None: there is none."""
    several_nodes: bool = True


def highly_available(
    obj: Object, *, kind: str, situation: Situation, surroundings: Surroundings, settings: HighAvailabilityConfig
) -> Object:
    """Raises: Refusal: an annotation makes no sense."""
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    pod = template.get("spec") or {}
    wanted = _replicas(obj, situation, surroundings)
    constraints = _constraints(
        obj, kind=kind, replica_count=wanted or 0, situation=situation, surroundings=surroundings, settings=settings
    )
    changed_pod = {
        **pod,
        **_unless_same(pod, "affinity", _affinity(pod, situation)),
        **_unless_same(pod, "tolerations", tolerations.with_defaults(pod.get("tolerations"), settings)),
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
    """A field to put in, only if that says something new: what is absent stays so."""
    return {} if parent.get(field) == value else {field: value}


def _replicas(obj: Object, situation: Situation, surroundings: Surroundings) -> int | None:
    current: int | None = (obj.get("spec") or {}).get("replicas")
    needed = replicas.needed(obj, current, failure_tolerance=situation.failure_tolerance)
    return replicas.of_workload(current, needed, is_scaled=surroundings.max_replicas is not None)


def _affinity(pod: Object, situation: Situation) -> Object | None:
    existing: Object | None = pod.get("affinity")
    return affinity.with_zones(existing, situation.zones) if affinity.binds(situation) else existing


def _constraints(
    obj: Object,
    *,
    kind: str,
    replica_count: int,
    situation: Situation,
    surroundings: Surroundings,
    settings: HighAvailabilityConfig,
) -> list[Object] | None:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    latest, is_stateful_set = settings.behavior == "latest", kind == "StatefulSet"
    wanted = spread.constraints(
        (template.get("spec") or {}).get("topologySpreadConstraints"),
        spread.Spread(
            situation=situation,
            replicas=replica_count,
            most_replicas=max(replica_count, surroundings.max_replicas or 0),
            strictly_over_hosts=spread.over_hosts_strictly(
                situation,
                host_spread=is_truthy(annotations(obj).get(HOST_SPREAD)),
                several_nodes=surroundings.several_nodes,
            ),
            even_over_zones=latest,
            selector=_selector(spec, template, prefer_own=latest and is_stateful_set),
        ),
    )
    return spread.with_hash_key(wanted) if latest and not is_stateful_set else wanted


def _selector(spec: Object, template: Object, *, prefer_own: bool) -> Object:
    """All labels of the pods; the workload's own selector does not change with them, which old pods would not have."""
    if prefer_own and spec.get("selector"):
        return deepcopy(spec["selector"])
    return {"matchLabels": dict(labels(template))} if labels(template) else {}
