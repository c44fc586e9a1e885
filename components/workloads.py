"""Deployments of components, and the Services in front of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.parts import GARDEN, MOST_REVISIONS, TO_DNS, TO_RUNTIME_API_SERVER, made
from gardener import keys
from kube.objects import Object
from kube.resources import DEPLOYMENTS, SERVICES

REACHES_API_SERVER = {TO_DNS: keys.ALLOWED, TO_RUNTIME_API_SERVER: keys.ALLOWED}
"""Labels of pods that connect to the API server of the seed."""
SCRAPED_IN_SEED = f"{keys.NETWORKING_PREFIX}from-all-seed-scrape-targets-allowed-ports"
"""Annotation of Services: ports that Prometheus may reach."""


def deployment(
    name: str,
    *,
    labels: Mapping[str, str],
    pod: Object,
    namespace: str = GARDEN,
    selects: Mapping[str, str] | None = None,
    pod_labels: Mapping[str, str] | None = None,
    replicas: int = 1,
    **fields: Any,
) -> Object:
    """A Deployment.

    Args:
        name: of the Deployment.
        labels: of the Deployment.
        pod: the spec of its pods.
        namespace: of the Deployment.
        selects: labels that select its pods; None: `labels`.
        pod_labels: further ones.
        replicas: number of pods.
        fields: of the spec.
    """
    selects = dict(selects or labels)
    meta: Object = {"labels": {**selects, **(pod_labels or {})}}
    spec = {
        "replicas": replicas,
        "revisionHistoryLimit": MOST_REVISIONS,
        "selector": {"matchLabels": selects},
        "template": {"metadata": meta, "spec": pod},
        **fields,
    }
    return made(DEPLOYMENTS, name, namespace=namespace, labels=labels, spec=spec)


def container(name: str, image: str, *, cpu: str, memory: str, **fields: Any) -> Object:
    """Args: cpu, memory: its requests. fields: others."""
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", "resources": requests, **fields}


def container_ports(**ports: int) -> list[Object]:
    """Container ports from names and numbers."""
    return [{"name": name, "containerPort": number, "protocol": "TCP"} for name, number in ports.items()]


def service(
    name: str,
    *,
    ports: Sequence[Object],
    selects: Mapping[str, str],
    namespace: str = GARDEN,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **fields: Any,
) -> Object:
    """A Service. Args: fields: of the spec."""
    spec = {"selector": dict(selects), "ports": list(ports), **({"type": "ClusterIP"} | fields)}
    return made(SERVICES, name, namespace=namespace, labels=labels, annotations=annotations, spec=spec)


def port(name: str, number: int, target: int | str = 0) -> Object:
    """Port of a Service. Args: target: of the pods, if it differs."""
    return {"name": name, "port": number, "targetPort": target or number, "protocol": "TCP"}
