"""Common parts of the gardenlet's resource managers: pods, Service and autoscaler."""

from collections.abc import Mapping

from components.parts import autoscaler
from components.resource_manager.configuration import (
    CERTIFICATES,
    DIRECTORY,
    FILE,
    HEALTH,
    METRICS,
    WEBHOOKS,
)
from components.workloads import container, container_ports, port, service
from kube.objects import Object

NAME = "gardener-resource-manager"
LABELS = {"app": NAME}
READ_BY_ALL = 0o644
_TOKEN_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 43_200

Volumes = dict[str, tuple[str, Object]]
"""Mount path and source of volumes, by name."""


def pod(image: str, *, server_secret: str, priority: str, config: str = NAME, more: Volumes | None = None) -> Object:
    """The spec of its pods.

    Args:
        image: of this project.
        server_secret: with its certificate.
        priority: name of a PriorityClass.
        config: name of its ConfigMap.
        more: further volumes.
    """
    token = {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}}
    root = {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    namespace = {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}}
    volumes: Volumes = {
        "kube-api-access-gardener": (
            _TOKEN_DIRECTORY,
            {"projected": {"sources": [token, root, namespace], "defaultMode": READ_BY_ALL}},
        ),
        "tls": (CERTIFICATES, {"secret": {"secretName": server_secret, "defaultMode": READ_BY_ALL}}),
        "config": (DIRECTORY, {"configMap": {"name": config, "defaultMode": READ_BY_ALL}}),
        **(more or {}),
    }
    mounts = [{"name": name, "mountPath": path, "readOnly": True} for name, (path, _) in volumes.items()]
    return {
        "serviceAccountName": NAME,
        "priorityClassName": priority,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(image, mounts)],
        "volumes": [{"name": name, **source} for name, (_, source) in volumes.items()],
    }


def _container(image: str, mounts: list[Object]) -> Object:
    return container(
        NAME,
        image,
        cpu="23m",
        memory="75Mi",
        args=[f"--config={DIRECTORY}/{FILE}"],
        ports=container_ports(metrics=METRICS, health=HEALTH),
        livenessProbe=_probe("/healthz", initialDelaySeconds=30, timeoutSeconds=5, failureThreshold=5),
        readinessProbe=_probe("/readyz", initialDelaySeconds=10),
        volumeMounts=mounts,
    )


def _probe(path: str, **fields: int) -> Object:
    return {"httpGet": {"path": path, "port": HEALTH, "scheme": "HTTP"}, **fields}


def its_service(namespace: str, *, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Object:
    ports = [port("metrics", METRICS), port("health", HEALTH), port("server", 443, WEBHOOKS)]
    return service(NAME, namespace=namespace, ports=ports, selects=LABELS, labels=labels, annotations=annotations)


def its_autoscaler(namespace: str, *, labels: Mapping[str, str], least_memory: str) -> Object:
    policy = {
        "containerName": "*",
        "controlledValues": "RequestsOnly",
        "minAllowed": {"memory": least_memory},
        "maxAllowed": {"cpu": "4", "memory": "10G"},
    }
    return autoscaler(f"{NAME}-vpa", namespace, deployment=NAME, policy=policy, labels=labels)
