"""Metrics of the state of objects in the seed, computed from their fields."""

from collections.abc import Iterator

import yaml

from components import monitors
from components.access import FOLLOW, cluster_role, cluster_role_binding, rule, service_account
from components.parts import GARDEN, allowed_ports, autoscaler, disruption_budget, in_seed, made
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import (
    REACHES_API_SERVER,
    SCRAPED_IN_SEED,
    container,
    deployment,
    port,
    service,
)
from gardener import conditions, keys
from gardener.api.kinds import SCRAPE_CONFIGS, VERTICAL_POD_AUTOSCALERS
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

NAME = "kube-state-metrics-seed"
_ROLE = f"gardener.cloud:monitoring:{NAME}"
_LABELS = {"component": NAME, "type": "seed"}
_MONITORING = {"role": "monitoring"}
_STATE, _STATE_FILE, _STATE_DIRECTORY = "custom-resource-state-config", "custom-resource-state.yaml", "/config"
_SCRAPED_IN_GARDEN = f"{keys.NETWORKING_PREFIX}from-all-garden-scrape-targets-allowed-ports"
_PORT = 8080
_KINDS = (
    *("deployments", "pods", "statefulsets", "nodes", "horizontalpodautoscalers"),
    *("persistentvolumeclaims", "replicasets", "namespaces"),
)
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
    return in_seed(NAME, _contents(inputs), condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield service_account(NAME, GARDEN, labels=_LABELS)
    yield cluster_role(_ROLE, *_rules(), labels=_LABELS)
    yield cluster_role_binding(_ROLE, NAME, namespace=GARDEN, labels=_LABELS, is_replaceable=True)
    state = yaml.dump(_state(), Dumper=Dumper, sort_keys=True, width=1000)
    yield from stamp([made(CONFIG_MAPS, _STATE, namespace=GARDEN, data={_STATE_FILE: state}), _deployment(inputs)])
    scraped = {name: allowed_ports(_PORT) for name in (SCRAPED_IN_SEED, _SCRAPED_IN_GARDEN)}
    ports = [port("metrics", 80, _PORT)]
    yield service(NAME, ports=ports, selects=_LABELS, labels=_LABELS, annotations=scraped)
    yield disruption_budget("kube-state-metrics-pdb-seed", GARDEN, labels=_LABELS)
    policy = {"containerName": "*", "controlledValues": "RequestsOnly", "minAllowed": {"memory": "32Mi"}}
    yield autoscaler("kube-state-metrics-vpa-seed", GARDEN, deployment=NAME, policy=policy)
    if inputs.serves(SCRAPE_CONFIGS):
        of_shoots = monitors.OF_SHOOTS, "namespace"
        # Only the cache keeps series without a namespace, such as those of nodes.
        yield _scraped(monitors.CACHE)
        yield _scraped(monitors.SEED, monitors.drop(*of_shoots), monitors.keep(".+", "namespace"))


def _scraped(server: str, *relabelings: Object) -> Object:
    """Scrape config of the Service rather than its Pods, so that each series exists only once."""
    label = "__meta_kubernetes_service_label_component"
    return monitors.scrape_config(
        server,
        "kube-state-metrics",
        kubernetesSDConfigs=[{"role": "Service", "namespaces": {"names": [GARDEN]}}],
        honorLabels=True,
        relabelings=[
            monitors.keep(NAME, label),
            monitors.keep("metrics", "__meta_kubernetes_service_port_name"),
            {"action": "replace", "targetLabel": "job", "replacement": "kube-state-metrics"},
        ],
        metricRelabelings=list(relabelings),
    )


def _deployment(inputs: SeedInputs) -> Object:
    arguments = [
        f"--port={_PORT}",
        "--telemetry-port=8081",
        f"--resources={','.join(_KINDS)}",
        "--metric-labels-allowlist=nodes=[*],pods=[origin]",
        "--metric-annotations-allowlist=namespaces=[shoot.gardener.cloud/uid]",
        f"--metric-allowlist={','.join(f'^kube_{name}$' for name in _metrics())}",
        f"--custom-resource-state-config-file={_STATE_DIRECTORY}/{_STATE_FILE}",
    ]
    probe = {"httpGet": {"path": "/healthz", "port": _PORT}, "initialDelaySeconds": 5, "timeoutSeconds": 5}
    its_container = container(
        "kube-state-metrics",
        inputs.images.kube_state_metrics,
        cpu="10m",
        memory="32Mi",
        args=arguments,
        ports=[{"name": "metrics", "containerPort": _PORT, "protocol": "TCP"}],
        livenessProbe=probe,
        readinessProbe={**probe, "failureThreshold": 3, "periodSeconds": 30, "successThreshold": 1},
        volumeMounts=[{"name": _STATE, "mountPath": _STATE_DIRECTORY, "readOnly": True}],
    )
    pod = {
        "containers": [its_container],
        "priorityClassName": "gardener-system-600",
        "serviceAccountName": NAME,
        "volumes": [{"name": _STATE, "configMap": {"name": _STATE}}],
    }
    return deployment(
        NAME,
        labels={**_LABELS, **_MONITORING},
        selects=_LABELS,
        pod_labels={**_MONITORING, **REACHES_API_SERVER},
        pod=pod,
        replicas=2,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
    )


# --- metrics


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


def _rules() -> Iterator[Object]:
    core = (
        *("nodes", "pods", "services", "resourcequotas", "replicationcontrollers", "limitranges"),
        *("persistentvolumeclaims", "namespaces"),
    )
    yield rule("", core, FOLLOW)
    yield rule(("apps", "extensions"), ("daemonsets", "deployments", "replicasets", "statefulsets"), FOLLOW)
    yield rule("batch", ("cronjobs", "jobs"), FOLLOW)
    yield rule("apiextensions.k8s.io", "customresourcedefinitions", FOLLOW)
    yield rule("autoscaling.k8s.io", "verticalpodautoscalers", FOLLOW)
    yield rule("operator.gardener.cloud", "gardens", FOLLOW)
    yield rule("autoscaling", "horizontalpodautoscalers", FOLLOW)


COMPONENT = SeedComponent(
    name=NAME, title="kube-state-metrics", images=["kube_state_metrics"], objects=_objects, asks_for=[SCRAPE_CONFIGS]
)
