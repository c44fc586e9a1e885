"""Admission requests as API servers send them, one for each measured webhook, of the usual size."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kube.resources import Resource

NAMESPACE = "benchmark"
SERVICE_ACCOUNT = "without-token"
SPREAD_NAMESPACE_ANNOTATIONS = {
    "high-availability-config.resources.gardener.cloud/failure-tolerance-type": "zone",
    "high-availability-config.resources.gardener.cloud/zones": "a,b,c",
}

WEBHOOKS: Mapping[str, Any] = {
    "extensionValidation": {"enabled": True},
    "highAvailabilityConfig": {"enabled": True},
    "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
    "podSchedulerName": {"enabled": True, "schedulerName": "bin-packing-scheduler"},
    "podTopologySpreadConstraints": {"enabled": True},
    "projectedTokenMount": {"enabled": True},
    "seccompProfile": {"enabled": True},
    "systemComponentsConfig": {
        "enabled": True,
        "podNodeSelector": {"worker.gardener.cloud/system-components": "true"},
        "podTolerations": [{"key": "system", "operator": "Exists"}],
    },
}
"""Section of the configuration that all of these need."""


@dataclass(frozen=True, slots=True)
class Load:
    """Request for one path."""

    webhook: str
    path: str
    body: bytes


def loads() -> list[Load]:
    pod_body = _review(_pod(), group="", kind="Pod", resource="pods")
    of_pods = [
        ("kubernetes-service-host", "/webhooks/kubernetes-service-host"),
        ("pod-scheduler-name", "/webhooks/default-pod-scheduler-name"),
        ("pod-topology-spread-constraints", "/webhooks/pod-topology-spread-constraints"),
        ("projected-token-mount", "/webhooks/mount-projected-service-account-token"),
        ("seccomp-profile", "/webhooks/seccomp-profile"),
        ("system-components-config", "/webhooks/system-components-config"),
    ]
    deployment = _review(_deployment(), group="apps", kind="Deployment", resource="deployments")
    worker = _review(
        _worker(), group="extensions.gardener.cloud", kind="Worker", resource="workers", version="v1alpha1"
    )
    return [
        *(Load(webhook, path, pod_body) for webhook, path in of_pods),
        Load("pods (combined)", "/webhooks/pods", pod_body),
        Load("high-availability-config", "/webhooks/high-availability-config", deployment),
        Load("extension-validation (Worker)", "/validate-extensions-gardener-cloud-v1alpha1-worker", worker),
    ]


def _review(obj: Mapping[str, Any], *, group: str, kind: str, resource: str, version: str = "v1") -> bytes:
    return review(obj, Resource(group, version, kind, resource, namespaced=True), user=_REPLICA_SET_CONTROLLER)


_REPLICA_SET_CONTROLLER = {
    "username": "system:serviceaccount:kube-system:replicaset-controller",
    "uid": "5f1c7a3e-8b0e-4a57-9c56-0d2f1a4d8a11",
    "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
}


def review(
    obj: Mapping[str, Any], resource: Resource, *, user: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> bytes:
    """Review of a creation, or with `old` of an update."""
    kinds = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    resources = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    options = "CreateOptions" if old is None else "UpdateOptions"
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kinds,
        "resource": resources,
        "requestKind": kinds,
        "requestResource": resources,
        "name": obj["metadata"].get("name", ""),
        "namespace": obj["metadata"].get("namespace", ""),
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": user,
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
    }
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()


def pod_spec() -> dict[str, Any]:
    return {
        "serviceAccountName": SERVICE_ACCOUNT,
        "containers": [
            {
                "name": "main",
                "image": "registry.example/component:v1.2.3",
                "command": ["/component", "--config=/etc/component/config.yaml"],
                "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "ports": [{"name": "metrics", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/component"}],
            }
        ],
        "restartPolicy": "Always",
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "component"}},
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": "component-config", "defaultMode": 420}}],
    }


def _pod() -> dict[str, Any]:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "component-7c9f6d5b8",
        "uid": "8e0b7c9c-2f6e-4f4b-9a6b-3c6f0a5d7e21",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "generateName": "component-7c9f6d5b8-",
        "namespace": NAMESPACE,
        "labels": {"app": "component", "pod-template-hash": "7c9f6d5b8"},
        "annotations": {"checksum/config": "4f2c1d0e9b8a7f6e5d4c3b2a1f0e9d8c"},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(), "status": {}}


def _deployment() -> dict[str, Any]:
    labels = {"app": "component", "high-availability-config.resources.gardener.cloud/type": "server"}
    template = {"metadata": {"labels": {"app": "component"}}, "spec": pod_spec()}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "component"}}, "template": template}
    metadata = {"name": "component", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, "status": {}}


def _worker() -> dict[str, Any]:
    def pool(number: int) -> dict[str, Any]:
        return {
            "name": f"pool-{number}",
            "machineType": "large",
            "machineImage": {"name": "linux", "version": "1.2.3"},
            "minimum": 1,
            "maximum": 3,
            "maxSurge": 1,
            "maxUnavailable": 0,
            "userDataSecretRef": {"name": f"pool-{number}", "key": "userData"},
            "volume": {"type": "ssd", "size": "50Gi"},
            "zones": ["a", "b", "c"],
        }

    spec = {
        "type": "local",
        "region": "here",
        "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
        "pools": [pool(number) for number in range(3)],
    }
    metadata = {"name": "worker", "namespace": NAMESPACE}
    return {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": metadata, "spec": spec}
