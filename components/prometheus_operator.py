"""The operator that creates Prometheus servers and their configuration from objects."""

from collections.abc import Iterator

from components import prometheus
from components.access import (
    EVERYTHING,
    FOLLOW,
    READ,
    cluster_role,
    cluster_role_binding,
    rule,
    service_account,
    urls,
)
from components.parts import GARDEN, autoscaler, in_seed
from components.seed_component import SeedComponent, SeedInputs
from components.workloads import REACHES_API_SERVER, container, deployment, service
from gardener import conditions
from gardener.api.seed_definitions import Stage
from kube.objects import Object

NAME = "prometheus-operator"
_LABELS = {"app": NAME}
_PORT = 8080
_KINDS = (
    *("alertmanagers", "alertmanagers/finalizers", "alertmanagers/status", "alertmanagerconfigs"),
    *("prometheuses", "prometheuses/finalizers", "prometheuses/status"),
    *("prometheusagents", "prometheusagents/finalizers", "prometheusagents/status"),
    *("thanosrulers", "thanosrulers/finalizers", "thanosrulers/status"),
    *("scrapeconfigs", "servicemonitors", "podmonitors", "probes", "prometheusrules"),
)


def _objects(inputs: SeedInputs) -> list[Object]:
    return in_seed(NAME, _contents(inputs), condition=conditions.OBSERVABILITY_COMPONENTS_HEALTHY)


def _contents(inputs: SeedInputs) -> Iterator[Object]:
    yield service_account(NAME, GARDEN, labels=_LABELS)
    yield cluster_role(NAME, *_rules(), labels=_LABELS)
    yield cluster_role_binding(NAME, NAME, namespace=GARDEN, labels=_LABELS)
    yield cluster_role(
        prometheus.ROLE,
        rule("", ("nodes", "services", "endpoints", "pods"), READ),
        rule("", ("nodes/metrics", "nodes/proxy"), "get"),
        urls(("/metrics", "/metrics/*"), "get"),
    )
    yield _deployment(inputs)
    ports = [{"name": "http", "port": _PORT, "targetPort": "http"}]
    yield service(NAME, ports=ports, selects=_LABELS, labels=_LABELS, clusterIP="None")
    policy = {"containerName": "*", "minAllowed": {"memory": "100Mi"}}
    yield autoscaler(NAME, GARDEN, deployment=NAME, policy=policy, labels=_LABELS)


def _deployment(inputs: SeedInputs) -> Object:
    reloader = {"cpu-request": "10m", "cpu-limit": "0", "memory-request": "25Mi", "memory-limit": "0"}
    arguments = [
        f"--prometheus-config-reloader={inputs.images.config_reloader}",
        *(f"--config-reloader-{name}={value}" for name, value in reloader.items()),
        "--enable-config-reloader-probes=false",
    ]
    secured = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    its_container = container(
        NAME,
        inputs.images.prometheus_operator,
        cpu="100m",
        memory="100Mi",
        args=arguments,
        env=[{"name": "GOGC", "value": "30"}],
        ports=[{"name": "http", "containerPort": _PORT}],
        securityContext=secured,
    )
    pod = {
        "containers": [its_container],
        "priorityClassName": "gardener-system-600",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "serviceAccountName": NAME,
    }
    return deployment(NAME, labels=_LABELS, pod_labels=REACHES_API_SERVER, pod=pod)


def _rules() -> Iterator[Object]:
    yield rule("monitoring.coreos.com", _KINDS, EVERYTHING)
    yield rule("apps", "statefulsets", EVERYTHING)
    yield rule("", ("configmaps", "secrets"), EVERYTHING)
    yield rule("", "pods", ("list", "delete"))
    yield rule("", ("services", "services/finalizers", "endpoints"), ("get", "create", "update", "delete"))
    yield rule("", "nodes", FOLLOW)
    yield rule("", "namespaces", READ)
    yield rule("", "events", ("patch", "create"))
    yield rule("networking.k8s.io", "ingresses", READ)
    yield rule("storage.k8s.io", "storageclasses", "get")


COMPONENT = SeedComponent(
    name=NAME,
    title="Prometheus Operator",
    images=["prometheus_operator", "config_reloader"],
    objects=_objects,
    is_of_garden=True,
    needs=[Stage.MONITORING],
)
