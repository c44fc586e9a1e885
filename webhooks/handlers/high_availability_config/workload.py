"""A Deployment or StatefulSet, put together anew around the values that the rules change."""

from copy import deepcopy

from config.resource_manager.webhooks import HighAvailabilityConfig
from kube.objects import Object, annotations, is_truthy, labels
from webhooks.handlers.high_availability_config.cluster import ClusterState
from webhooks.handlers.high_availability_config.rules import replicas, scheduling
from webhooks.handlers.high_availability_config.rules.requirements import HOST_SPREAD, Requirements


def highly_available(
    obj: Object, *, kind: str, requirements: Requirements, cluster: ClusterState, settings: HighAvailabilityConfig
) -> Object:
    """Raises: Refusal: an annotation makes no sense."""
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
        **_unless_same(pod, "tolerations", scheduling.with_tolerations(pod.get("tolerations"), settings)),
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


def _replicas(obj: Object, requirements: Requirements, cluster: ClusterState) -> int | None:
    current: int | None = (obj.get("spec") or {}).get("replicas")
    needed = replicas.needed(obj, current, failure_tolerance=requirements.failure_tolerance)
    return replicas.of_workload(current, needed, is_scaled=cluster.max_replicas is not None)


def _affinity(pod: Object, requirements: Requirements) -> Object | None:
    existing: Object | None = pod.get("affinity")
    return scheduling.with_zones(existing, requirements.zones) if scheduling.needs_zones(requirements) else existing


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
    wanted = scheduling.constraints(
        (template.get("spec") or {}).get("topologySpreadConstraints"),
        scheduling.Spread(
            requirements=requirements,
            replicas=replica_count,
            most_replicas=max(replica_count, cluster.max_replicas or 0),
            strictly_over_hosts=scheduling.over_hosts_strictly(
                requirements,
                host_spread=is_truthy(annotations(obj).get(HOST_SPREAD)),
                several_nodes=cluster.several_nodes,
            ),
            even_over_zones=latest,
            selector=_selector(spec, template, prefer_own=latest and is_stateful_set),
        ),
    )
    return scheduling.with_hash_key(wanted) if latest and not is_stateful_set else wanted


def _selector(spec: Object, template: Object, *, prefer_own: bool) -> Object:
    """All labels of the pods; the workload's own selector does not change with them, which old pods would not have."""
    if prefer_own and spec.get("selector"):
        return deepcopy(spec["selector"])
    return {"matchLabels": dict(labels(template))} if labels(template) else {}
