"""Metrics of the state of objects in the seed, computed from their fields."""

from collections.abc import Iterator

import yaml

from components.manifest import manifest, without
from components.parts import in_seed
from components.seed_component import SeedComponent, SeedInputs
from gardener import conditions
from gardener.api.kinds import SCRAPE_CONFIGS, VERTICAL_POD_AUTOSCALERS
from gardener.references import stamp
from kube.objects import Object
from kube.yaml import Dumper

NAME = "kube-state-metrics-seed"
_METRICS = {
    "daemonset": (
        *("metadata_generation", "status_current_number_scheduled", "status_desired_number_scheduled"),
        *("status_number_available", "status_number_unavailable", "status_updated_number_scheduled"),
    ),
    "deployment": (
        *("metadata_generation", "spec_replicas", "status_observed_generation", "status_replicas"),
        *("status_replicas_available", "status_replicas_unavailable", "status_replicas_updated"),
    ),
    "horizontalpodautoscaler": (
        *("spec_max_replicas", "spec_min_replicas", "status_current_replicas", "status_desired_replicas"),
        "status_condition",
    ),
    "namespace": ("annotations",),
    "node": (
        *("info", "labels", "spec_taint", "spec_unschedulable", "status_allocatable", "status_capacity"),
        "status_condition",
    ),
    "persistentvolumeclaim": ("resource_requests_storage_bytes",),
    "pod": (
        *("container_info", "container_resource_limits", "container_resource_requests"),
        *("container_status_restarts_total", "info", "labels", "owner"),
        *("spec_volumes_persistentvolumeclaims_info", "status_phase", "status_ready"),
    ),
    "replicaset": ("owner",),
    "statefulset": (
        *("metadata_generation", "replicas", "status_observed_generation", "status_replicas"),
        *("status_replicas_current", "status_replicas_ready", "status_replicas_updated"),
    ),
}
_AUTOSCALER = "customresource_verticalpodautoscaler"
_RECOMMENDATIONS = {
    "target": "target",
    "uncappedtarget": "uncappedTarget",
    "upperbound": "upperBound",
    "lowerbound": "lowerBound",
}
_POLICIES = {"minallowed": "minAllowed", "maxallowed": "maxAllowed"}
_UNITS = {"cpu": "core", "memory": "byte"}


def _objects(inputs: SeedInputs) -> list[Object]:
    found = manifest(
        __file__,
        image=inputs.images.kube_state_metrics,
        metrics=",".join(f"^kube_{name}$" for name in _metrics()),
        state=yaml.dump(_state(), Dumper=Dumper, sort_keys=True, width=1000),
    )
    contents = found if inputs.serves(SCRAPE_CONFIGS) else without(found, SCRAPE_CONFIGS.kind)
    return in_seed(NAME, stamp(contents), condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)


def _metrics() -> Iterator[str]:
    for kind, names in _METRICS.items():
        yield from (f"{kind}_{name}" for name in names)
    yield from (f"{_AUTOSCALER}_{each['name']}" for each in _of_autoscalers())


def _state() -> Object:
    """Configuration of metrics of VerticalPodAutoscalers, which are not built into the program."""
    kind = VERTICAL_POD_AUTOSCALERS
    labels = {
        "namespace": ["metadata", "namespace"],
        "verticalpodautoscaler": ["metadata", "name"],
        "target_api_version": ["spec", "targetRef", "apiVersion"],
        "target_kind": ["spec", "targetRef", "kind"],
        "target_name": ["spec", "targetRef", "name"],
    }
    resource = {
        "groupVersionKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "metricNamePrefix": f"kube_{_AUTOSCALER}",
        "labelsFromPath": labels,
        "metrics": list(_of_autoscalers()),
    }
    return {"kind": "CustomResourceStateMetrics", "spec": {"resources": [resource]}}


def _of_autoscalers() -> Iterator[Object]:
    recommendations = ["status", "recommendation", "containerRecommendations"]
    for short, field in _RECOMMENDATIONS.items():
        for unit in _UNITS:
            name = f"status_recommendation_containerrecommendations_{short}_{unit}"
            yield _gauge(name, recommendations, [field, unit], {"container": ["containerName"]}, unit)
    policies = ["spec", "resourcePolicy", "containerPolicies"]
    for short, field in _POLICIES.items():
        for unit in _UNITS:
            name = f"spec_resourcepolicy_containerpolicies_{short}_{unit}"
            yield _gauge(name, policies, [field, unit], {"container": ["containerName"]}, unit)
    modes = {
        "labelName": "update_mode",
        "list": ["Off", "Initial", "Recreate", "Auto"],
        "path": ["spec", "updatePolicy", "updateMode"],
    }
    yield {
        "name": "spec_updatepolicy_updatemode",
        "help": "The mode in which an autoscaler changes requests.",
        "each": {"type": "StateSet", "stateSet": modes},
    }


def _gauge(name: str, path: list[str], value: list[str], labels: Object, unit: str) -> Object:
    gauge = {"path": path, "valueFrom": value, "labelsFromPath": labels}
    constant = {"resource": unit, "unit": _UNITS[unit]}
    return {
        "name": name,
        "help": f"{' '.join(value[:-1])} of {unit} for a container.",
        "commonLabels": constant,
        "each": {"type": "Gauge", "gauge": gauge},
    }


COMPONENT = SeedComponent(
    name=NAME, title="kube-state-metrics", images=["kube_state_metrics"], objects=_objects, asks_for=[SCRAPE_CONFIGS]
)
