"""The configuration files of resource managers, of a seed and of a Shoot. Missing fields have their defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from components.parts import GARDEN, SEED_CLASS
from gardener import keys
from kube.objects import Object

DIRECTORY = "/etc/gardener-resource-manager-config"
FILE = "config.yaml"
CERTIFICATES = "/etc/gardener-resource-manager-tls"
METRICS, HEALTH, WEBHOOKS = 8080, 8081, 10250
"""Ports."""

_ROLES = (keys.ROLE_SHOOT, keys.ROLE_EXTENSION, keys.ROLE_ISTIO_SYSTEM, keys.ROLE_ISTIO_INGRESS)
_SHOOT_NAMESPACES = ("kube-system", "kubernetes-dashboard", "kube-node-lease")
"""Namespaces in Shoots with Gardener's objects."""
_EXPOSURE_CLASS = "handler.exposureclass.gardener.cloud/name"
_OF_PODS = ("highAvailabilityConfig", "podTopologySpreadConstraints", "projectedTokenMount", "tokenInvalidator")
_FOR_SYSTEM_COMPONENTS = {"worker.gardener.cloud/system-components": "true"}
"""Labels of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """Settings for pods of a Shoot with workers.

    Attributes:
        host: of the API server, for pods.
        tolerations: added to system components, for the taints of pools.
        patience: for failing nodes, see `of_seed`.
    """

    host: str
    tolerations: Sequence[Object] = ()
    patience: Mapping[str, int] = field(default_factory=dict)


def policed_namespaces(additional: Sequence[Object]) -> list[Object]:
    """Selectors of the namespaces in which the resource manager maintains NetworkPolicies of Services."""
    return [
        *({"matchLabels": {keys.ROLE: role}} for role in _ROLES),
        {"matchExpressions": [{"key": _EXPOSURE_CLASS, "operator": "Exists"}]},
        {"matchLabels": {"kubernetes.io/metadata.name": GARDEN}},
        *additional,
    ]


def of_seed(
    *, name: str, additional_namespaces: Sequence[Object] = (), patience: Mapping[str, int] | None = None
) -> Object:
    """Configuration for a seed.

    Args:
        name: of its Lease, in `garden`.
        additional_namespaces: selectors of further ones with policies.
        patience: `nodeToleration` of the gardenlet: how long pods stay on failing nodes.
    """
    ingress = {"matchLabels": {"app": "nginx-ingress", "component": "controller"}}
    controllers: dict[str, Any] = {
        "garbageCollector": {"enabled": True, "syncPeriod": "12h0m0s"},
        "health": {"syncPeriod": "1m0s"},
        "managedResource": {"concurrentSyncs": 20, "syncPeriod": "1h0m0s"},
        "networkPolicy": {
            "enabled": True,
            "concurrentSyncs": 20,
            "namespaceSelectors": policed_namespaces(additional_namespaces),
            "ingressControllerSelector": {"namespace": GARDEN, "podSelector": ingress},
        },
        "resourceClass": SEED_CLASS,
        "tokenInvalidator": {"enabled": True, "concurrentSyncs": 5},
        "tokenRequestor": {"enabled": False},
    }
    enabled = (
        "crdDeletionProtection",
        "extensionValidation",
        "highAvailabilityConfig",
        "podTopologySpreadConstraints",
        "projectedTokenMount",
        "tokenInvalidator",
    )
    return _patient(_file(name, GARDEN, controllers, enabled), patience or {})


def of_shoot(*, name: str, namespace: str, seed_identity: str, kubeconfig: str, pods: Pods | None) -> Object:
    """Configuration for a Shoot.

    Args:
        name: of its Lease.
        namespace: of the Shoot, in the seed.
        seed_identity: in annotations of objects, to name the seed of their ManagedResource.
        kubeconfig: file with access to the Shoot.
        pods: None if there are no workers.
    """
    controllers: dict[str, Any] = {
        "clusterID": seed_identity,
        "garbageCollector": {"enabled": True, "syncPeriod": "12h0m0s"},
        "health": {"concurrentSyncs": 10, "syncPeriod": "1m0s"},
        # Only differences are written, so a reconciliation is cheap.
        "managedResource": {"concurrentSyncs": 20, "syncPeriod": "1m0s"},
        "networkPolicy": {"enabled": False},
        "tokenInvalidator": {"enabled": True, "concurrentSyncs": 5},
        "tokenRequestor": {"enabled": True, "concurrentSyncs": 5},
    }
    connections = {
        "sourceClientConnection": {"namespaces": [namespace]},
        "targetClientConnection": {"namespaces": list(_SHOOT_NAMESPACES), "kubeconfig": kubeconfig},
    }
    if pods is None:
        return _file(name, namespace, controllers, ("tokenInvalidator",), log_format="json") | connections
    controllers |= {
        "kubeletCSRApprover": {"enabled": True, "concurrentSyncs": 5, "machineNamespace": namespace},
        "nodeAgentReconciliationDelay": {"enabled": True, "maxDelay": "5m0s"},
        "nodeCriticalComponents": {"enabled": True},
    }
    config = _patient(_file(name, namespace, controllers, _OF_PODS, log_format="json"), pods.patience) | connections
    config["webhooks"] |= {
        "kubernetesServiceHost": {"enabled": True, "host": pods.host},
        "systemComponentsConfig": {
            "enabled": True,
            "nodeSelector": _FOR_SYSTEM_COMPONENTS,
            "podNodeSelector": _FOR_SYSTEM_COMPONENTS,
            **({"podTolerations": list(pods.tolerations)} if pods.tolerations else {}),
        },
    }
    return config


def _patient(config: Object, patience: Mapping[str, int]) -> Object:
    config["webhooks"]["highAvailabilityConfig"] |= patience
    return config


def _file(
    name: str, namespace: str, controllers: Object, webhooks: Sequence[str], *, log_format: str = "text"
) -> Object:
    server = {
        "healthProbes": {"port": HEALTH},
        "metrics": {"port": METRICS},
        "webhooks": {"port": WEBHOOKS, "tls": {"serverCertDir": CERTIFICATES}},
    }
    return {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "controllers": controllers,
        "leaderElection": {"leaderElect": True, "resourceName": name, "resourceNamespace": namespace},
        "logFormat": log_format,
        "logLevel": "info",
        "server": server,
        "webhooks": {each: {"enabled": True} for each in webhooks},
    }
