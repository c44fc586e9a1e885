"""Small valid objects of the garden API: a base for tests, to be changed."""

import copy
from typing import Any

from gardener.api import garden
from kit.objects import specified
from kube.objects import Object
from kube.resources import Resource

_SECRET = {"name": "secret", "namespace": "garden"}
_WORKER = {
    "name": "w",
    "minimum": 1,
    "maximum": 2,
    "machine": {"type": "small", "image": {"name": "os", "version": "1.0.0"}},
    "volume": {"type": "std", "size": "20Gi"},
}
_SHOOT = {
    "region": "local",
    "cloudProfile": {"kind": "CloudProfile", "name": "local"},
    "secretBindingName": "sb",
    "kubernetes": {"version": "1.30.1"},
    "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
    "provider": {"type": "local", "workers": [_WORKER]},
}
_PROFILE = {
    "type": "local",
    "kubernetes": {"versions": [{"version": "1.30.1"}, {"version": "1.29.2", "classification": "deprecated"}]},
    "machineImages": [{"name": "os", "versions": [{"version": "1.0.0"}]}],
    "machineTypes": [{"name": "small", "cpu": "2", "gpu": "0", "memory": "4Gi"}],
    "volumeTypes": [{"name": "std", "class": "standard"}],
    "regions": [{"name": "local", "zones": [{"name": "a"}]}],
}
_GARDENLET = {"config": {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}}
_LABELS = {"metadata": {"labels": {"set": "s"}}}
_PRESET = {"server": {"issuerURL": "https://issuer.example.com", "clientID": "c"}, "weight": 1}

_FIELDS: dict[Resource, Object] = {
    garden.BACKUP_BUCKETS: {
        "spec": {"provider": {"type": "local", "region": "r"}, "secretRef": _SECRET, "seedName": "seed"}
    },
    garden.BACKUP_ENTRIES: {"spec": {"bucketName": "bucket", "seedName": "seed"}},
    garden.BASTIONS: {
        "spec": {
            "shootRef": {"name": "shoot"},
            "sshPublicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJhfVDK4MRHP5IvrUhJP2SdT3qJVZcMMgxmqjVyHbmsN a",
            "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        }
    },
    garden.CLOUD_PROFILES: {"spec": _PROFILE},
    garden.CLUSTER_OPEN_ID_CONNECT_PRESETS: {"spec": _PRESET},
    garden.CONTROLLER_DEPLOYMENTS: {"helm": {"rawChart": "YQ==", "values": {"a": 1}}},
    garden.CONTROLLER_INSTALLATIONS: {"spec": {"registrationRef": {"name": "r"}, "seedRef": {"name": "seed"}}},
    garden.CONTROLLER_REGISTRATIONS: {
        "spec": {
            "resources": [{"kind": "Extension", "type": "e", "reconcileTimeout": "1m"}],
            "deployment": {"deploymentRefs": [{"name": "d"}]},
        }
    },
    garden.CREDENTIALS_BINDINGS: {
        "provider": {"type": "local"},
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "secret", "namespace": "garden"},
    },
    garden.EXPOSURE_CLASSES: {"handler": "internal", "scheduling": {"tolerations": [{"key": "k"}]}},
    garden.GARDENLETS: {
        "spec": {"deployment": {"helm": {"ociRepository": {"ref": "registry.example.com/gardenlet:v1"}}}, **_GARDENLET}
    },
    garden.INTERNAL_SECRETS: {"data": {"a": "YQ=="}, "type": "Opaque"},
    garden.MANAGED_SEEDS: {"spec": {"shoot": {"name": "shoot"}, "gardenlet": _GARDENLET}},
    garden.MANAGED_SEED_SETS: {
        "spec": {
            "selector": {"matchLabels": {"set": "s"}},
            "template": {**_LABELS, "spec": {"gardenlet": _GARDENLET}},
            "shootTemplate": {**_LABELS, "spec": _SHOOT},
        }
    },
    garden.NAMESPACED_CLOUD_PROFILES: {
        "spec": {
            "parent": {"kind": "CloudProfile", "name": "local"},
            "kubernetes": {"versions": [{"version": "1.29.2", "expirationDate": "2040-01-01T00:00:00Z"}]},
        }
    },
    garden.OPEN_ID_CONNECT_PRESETS: {"spec": _PRESET},
    garden.PROJECTS: {
        "spec": {"description": "d", "members": [{"kind": "User", "name": "ann", "roles": ["admin", "owner"]}]}
    },
    garden.QUOTAS: {"spec": {"scope": {"apiVersion": "v1", "kind": "Secret"}, "metrics": {"cpu": "10"}}},
    garden.SECRET_BINDINGS: {"provider": {"type": "local"}, "secretRef": _SECRET},
    garden.SEEDS: {
        "spec": {
            "provider": {"type": "local", "region": "local", "zones": ["a", "b"]},
            "networks": {"nodes": "10.10.0.0/16", "pods": "10.20.0.0/16", "services": "10.30.0.0/16"},
            "dns": {"provider": {"type": "local", "secretRef": _SECRET}},
            "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
            "taints": [{"key": "k", "value": "v"}],
        }
    },
    garden.SEED_AUTOSCALERS: {
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
                "kind": "ManagedSeedSet",
                "name": "s",
            },
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "shoots", "target": {"type": "Utilization", "averageUtilization": 80}},
                }
            ],
        }
    },
    garden.SHOOTS: {"spec": _SHOOT},
    garden.SHOOT_STATES: {"spec": {"gardener": [{"name": "ca", "type": "secret", "data": {"a": "b"}}]}},
    garden.WORKLOAD_IDENTITIES: {"spec": {"audiences": ["a"], "targetSystem": {"type": "local"}}},
}


def garden_object(resource: Resource, name: str = "thing", *, namespace: str = "", **metadata: Any) -> Object:
    """No one else holds any part of it."""
    place = {"namespace": namespace} if resource.namespaced and namespace else {}
    return {
        **resource.type_meta,
        "metadata": {"name": name, **place, **metadata},
        **copy.deepcopy(_FIELDS[resource]),
    }


def shoot(name: str = "garden-dev/s", *, whole: bool = False, status: Object | None = None, **fields: Any) -> Object:
    """A Shoot for rules that are tested without a cluster; only `whole` ones have more than what is reported.

    Args: fields: those that are not of the metadata are the spec's.
    """
    made = specified(garden.SHOOTS, name, copy.deepcopy(_SHOOT) if whole else {}, fields)
    return made if status is None else {**made, "status": status}
