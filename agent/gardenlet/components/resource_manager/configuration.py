"""The configuration file of the resource manager of a seed. What is not said has its default."""

from collections.abc import Sequence
from typing import Any

from agent.gardenlet.components.parts import GARDEN, SEED_CLASS
from gardener import keys
from kube.objects import Object

DIRECTORY = "/etc/gardener-resource-manager-config"
FILE = "config.yaml"
CERTIFICATES = "/etc/gardener-resource-manager-tls"
METRICS, HEALTH, WEBHOOKS = 8080, 8081, 10250
"""Ports."""

_ROLES = (keys.ROLE_SHOOT, keys.ROLE_EXTENSION, keys.ROLE_ISTIO_SYSTEM, keys.ROLE_ISTIO_INGRESS)
_EXPOSURE_CLASS = "handler.exposureclass.gardener.cloud/name"


def policed_namespaces(additional: Sequence[Object]) -> list[Object]:
    """Selectors of the namespaces in which the resource manager keeps NetworkPolicies of Services."""
    return [
        *({"matchLabels": {keys.ROLE: role}} for role in _ROLES),
        {"matchExpressions": [{"key": _EXPOSURE_CLASS, "operator": "Exists"}]},
        {"matchLabels": {"kubernetes.io/metadata.name": GARDEN}},
        *additional,
    ]


def of_seed(*, name: str, additional_namespaces: Sequence[Object] = ()) -> Object:
    """Args: name: of its Lease, in `garden`. additional_namespaces: selectors of further ones with policies."""
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
    server = {
        "healthProbes": {"port": HEALTH},
        "metrics": {"port": METRICS},
        "webhooks": {"port": WEBHOOKS, "tls": {"serverCertDir": CERTIFICATES}},
    }
    return {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "controllers": controllers,
        "leaderElection": {"leaderElect": True, "resourceName": name, "resourceNamespace": GARDEN},
        "logFormat": "text",
        "logLevel": "info",
        "server": server,
        "webhooks": {each: {"enabled": True} for each in enabled},
    }
