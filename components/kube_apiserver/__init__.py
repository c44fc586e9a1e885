"""The API server of a Shoot: its workload, and the Service in front of it.

    service(namespace)   is created first, since its address is among the arguments
    objects(values)      the others, in the order in which they are written

A rotated encryption key comes in two steps: first all API servers get both keys and use the old one, and only then use
the new one; see `encryption_keys`. ConfigMaps and Secrets are named after their content, so that new content leads to a
roll-out, and the garbage collector removes those that no pod uses any more.
"""

from dataclasses import replace

from components.access import EVERYTHING, cluster_role, cluster_role_binding, rule, urls
from components.component import OF_DEPLOYMENT, Component, always
from components.control_plane import ALL_SCRAPE_TARGETS, FROM_GARDEN, in_shoot
from components.kube_apiserver.arguments import apis, issuer, issuer_of, runtime_config
from components.kube_apiserver.deployment import LABELS, its_deployment, its_files
from components.kube_apiserver.values import (
    NAME,
    PORT,
    Encryption,
    Given,
    Key,
    Secrets,
    Values,
    encryption_keys,
    values_of,
)
from components.parts import allowed_ports, autoscaler, disruption_budget, made
from components.results import CLUSTER_IP
from components.workloads import port
from components.workloads import service as service_of
from gardener import keys
from kube.objects import Object
from kube.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS

__all__ = [
    "COMPONENT",
    "LABELS",
    "NAME",
    "PORT",
    "Encryption",
    "Given",
    "Key",
    "Secrets",
    "Values",
    "apis",
    "encryption_keys",
    "issuer",
    "issuer_of",
    "objects",
    "runtime_config",
    "service",
    "values_of",
]

_MOST_REPLICAS = 6
_KUBELETS = "system:apiserver:kubelet"
_OF_KUBELETS = ("nodes/proxy", "nodes/stats", "nodes/log", "nodes/spec", "nodes/metrics")
_CALLERS = (
    '{"matchLabels":{"gardener.cloud/role":"istio-ingress"}}',
    f'{{"matchLabels":{{"{keys.ACCESS_TARGET_API_SERVER}":"allowed"}}}}',
    FROM_GARDEN,
    f'{{"matchExpressions":[{{"key":"{keys.EXPOSURE_CLASS_HANDLER}","operator":"Exists"}}]}}',
    '{"matchLabels":{"gardener.cloud/role":"extension"}}',
)
"""Selectors of namespaces whose pods may reach it."""


def service(namespace: str) -> Object:
    notes = {
        "networking.istio.io/exportTo": "*",
        ALL_SCRAPE_TARGETS: allowed_ports(PORT),
        keys.NAMESPACE_SELECTORS: f"[{','.join(_CALLERS)}]",
        keys.NAMESPACE_ALIAS: "all-shoots",
    }
    return service_of(
        NAME, namespace=namespace, ports=[port(NAME, PORT)], selects=LABELS, labels=LABELS, annotations=notes
    )


def objects(values: Values) -> list[Object]:
    return [
        *its_files(values),
        disruption_budget(NAME, values.namespace, labels=LABELS),
        its_deployment(values),
        _horizontal_autoscaler(values),
        *([_vertical_autoscaler(values)] if values.autoscaled else []),
        *(_rights(values) if values.has_workers else []),
    ]


def _rights(values: Values) -> list[Object]:
    """Rights of the API server at kubelets, deployed in the Shoot."""
    role = cluster_role(_KUBELETS, rule("", _OF_KUBELETS, EVERYTHING), urls(EVERYTHING, EVERYTHING))
    binding = cluster_role_binding(_KUBELETS, users=["system:kube-apiserver:kubelet"], is_replaceable=True)
    return in_shoot(f"shoot-core-{NAME}", [role, binding], namespace=values.namespace)


def _horizontal_autoscaler(values: Values) -> Object:
    """Autoscaler with high targets: more replicas are added only when a single one would be too large."""
    spec = {
        "scaleTargetRef": {**DEPLOYMENTS.type_meta, "name": NAME},
        "minReplicas": values.least_replicas,
        "maxReplicas": max(_MOST_REPLICAS, values.least_replicas),
        "metrics": [_metric("cpu", "6"), _metric("memory", "24G")],
        "behavior": {
            "scaleUp": _behavior("Percent", 100, period=60, window=60),
            "scaleDown": _behavior("Pods", 1, period=300, window=1800),
        },
    }
    labels = {keys.HIGH_AVAILABILITY_TYPE: "server"}
    return made(HORIZONTAL_POD_AUTOSCALERS, NAME, namespace=values.namespace, labels=labels, spec=spec)


def _metric(resource: str, average: str) -> Object:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _behavior(kind: str, value: int, *, period: int, window: int) -> Object:
    policy = {"type": kind, "value": value, "periodSeconds": period}
    return {"stabilizationWindowSeconds": window, "selectPolicy": "Max", "policies": [policy]}


def _vertical_autoscaler(values: Values) -> Object:
    policy = {
        "containerName": NAME,
        "controlledValues": "RequestsOnly",
        "minAllowed": {"cpu": "20m", "memory": "200M"},
    }
    return autoscaler(f"{NAME}-vpa", values.namespace, deployment=NAME, policy=policy)


COMPONENT = Component(
    name=NAME,
    title="Kubernetes API server",
    objects=lambda inputs: objects(values_of(inputs, Given())),
    readiness=replace(OF_DEPLOYMENT, seconds=300.0),
    awaited="Kubernetes API server rolled out",
    task="api-server",
    results=[CLUSTER_IP],
    after=["secrets", "etcd", "etcd-ready", "address", "extensions-before-ready"],
    is_of_workers=False,
    is_left_asleep=False,
    is_put_to_sleep_later=True,
    is_required=always,
)
"""Its tasks pass `Given` inputs; without them, the objects are only a sample."""
