"""The rules of CEL in the schemas of the garden API: what a change, or an object, may not be."""

from typing import Any

import pytest

from gardener.api import garden as resources
from gardener.api import structural
from gardener.api.expressions import rules_are_checked
from gardener.api.garden.definitions import definition
from gardener.api.schema import Schema
from kit.garden_objects import garden_object
from kube.objects import Object
from kube.resources import Resource

pytestmark = pytest.mark.skipif(not rules_are_checked(), reason="needs the extra cel")

HA = {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}}}
HA_ZONE = {"controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}}}
HA_TYPE = "spec.controlPlane.highAvailability.failureTolerance.type"
NAMESPACED_PROFILE = {"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}
CREDENTIALS = {"secretBindingName": None, "credentialsBindingName": "cb"}
WORKERLESS = {"secretBindingName": None, "provider": {"workers": None}}
SELECTOR = {"seedSelector": {"matchLabels": {"a": "b"}}}
ON_A_SEED = {"seedName": "seed"}
WITHOUT_GARDENLET: Object = {"gardenlet": None, "seedTemplate": {}}
SEED_TAINTED = {"spec": {"taints": [{"key": "a"}]}}


def merged(obj: Any, patch: Any) -> Any:
    """As a merge patch does it."""
    if not isinstance(patch, dict):
        return patch
    changed = {**(obj if isinstance(obj, dict) else {})}
    for field, value in patch.items():
        if value is None:
            changed.pop(field, None)
        else:
            changed[field] = merged(changed.get(field), value)
    return changed


def schema_of(resource: Resource) -> Schema:
    found = definition(group=resource.group, kind=resource.kind)
    assert found is not None
    return found.schema


def filled(resource: Resource, obj: Object) -> Object:
    """With its defaults."""
    stored: Object = structural.with_defaults(schema_of(resource), obj)
    return stored


def fields(resource: Resource, new: Object, old: Object | None = None) -> list[str]:
    return [error.path for error in structural.errors(schema_of(resource), new, old=old)]


@pytest.mark.parametrize(
    ("resource", "patch", "expected"),
    [
        (resources.SHOOTS, {"metadata": {"name": "a--b"}}, ["metadata.name"]),
        (resources.SHOOTS, {"metadata": {"name": "a.b"}}, ["metadata.name"]),
        (resources.SHOOTS, {"spec": WORKERLESS}, []),
        (resources.SHOOTS, {"spec": CREDENTIALS}, []),
        (resources.SHOOTS, {"spec": {"secretBindingName": None}}, ["spec.secretBindingName"]),
        (resources.SHOOTS, {"spec": {"credentialsBindingName": "cb"}}, ["spec.secretBindingName"]),
        *(
            (resource, {"metadata": {"name": "a.b"}}, ["metadata.name"])
            for resource in (
                resources.BACKUP_BUCKETS,
                resources.CONTROLLER_DEPLOYMENTS,
                resources.CONTROLLER_INSTALLATIONS,
                resources.CONTROLLER_REGISTRATIONS,
                resources.SHOOT_STATES,
            )
        ),
        (
            resources.SHOOT_STATES,
            {
                "spec": {
                    "extensions": [{"kind": "", "purpose": ""}],
                    "resources": [{"kind": "", "name": "", "data": {}}],
                }
            },
            [
                *("spec.extensions[0].kind", "spec.extensions[0].purpose"),
                *("spec.resources[0].kind", "spec.resources[0].name"),
            ],
        ),
        (resources.SHOOTS, {"spec": {"provider": {"workers": []}}}, ["spec.secretBindingName"]),
        (resources.SHOOTS, {"spec": {**WORKERLESS, "credentialsBindingName": "c"}}, ["spec.credentialsBindingName"]),
        (resources.PROJECTS, {"metadata": {"name": "a--b"}}, ["metadata.name"]),
        (resources.PROJECTS, {"spec": {"namespace": "gardener-system-seed-lease"}}, ["spec.namespace"]),
        (resources.QUOTAS, {"spec": {"scope": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}}}, []),
        (resources.QUOTAS, {"spec": {"scope": {"kind": "ConfigMap"}}}, ["spec.scope"]),
        (resources.QUOTAS, {"spec": {"scope": {"kind": None}}}, ["spec.scope"]),
        (resources.CREDENTIALS_BINDINGS, {"provider": {"type": "a,b"}}, ["provider.type"]),
        (resources.CREDENTIALS_BINDINGS, {"credentialsRef": {"kind": "WorkloadIdentity"}}, ["credentialsRef.kind"]),
        (resources.WORKLOAD_IDENTITIES, {"spec": {"targetSystem": {"type": "a,b"}}}, ["spec.targetSystem.type"]),
        (resources.CONTROLLER_DEPLOYMENTS, {"helm": {"rawChart": None}}, ["helm"]),
        (resources.CONTROLLER_DEPLOYMENTS, {"helm": {"ociRepository": {"ref": "r"}}}, ["helm"]),
        (resources.CONTROLLER_DEPLOYMENTS, {"helm": {"rawChart": None, "ociRepository": {"ref": "r"}}}, []),
        (
            resources.CONTROLLER_DEPLOYMENTS,
            {"helm": {"rawChart": None, "ociRepository": {"repository": "r", "digest": "sha256:1"}}},
            [],
        ),
        (
            resources.CONTROLLER_DEPLOYMENTS,
            {"helm": {"rawChart": None, "ociRepository": {"repository": "r", "digest": "1"}}},
            ["helm.ociRepository.digest"],
        ),
        (
            resources.CONTROLLER_DEPLOYMENTS,
            {"helm": {"rawChart": None, "ociRepository": {"repository": "r"}}},
            ["helm.ociRepository"],
        ),
        (
            resources.CONTROLLER_DEPLOYMENTS,
            {"helm": {"rawChart": None, "ociRepository": {"ref": "r", "tag": "t"}}},
            ["helm.ociRepository.tag"],
        ),
        (
            resources.CONTROLLER_REGISTRATIONS,
            {
                "spec": {
                    "resources": [{"kind": "Worker", "type": "a", "reconcileTimeout": "1m", "globallyEnabled": False}]
                }
            },
            ["spec.resources[0].globallyEnabled", "spec.resources[0].reconcileTimeout"],
        ),
        (
            resources.CONTROLLER_REGISTRATIONS,
            {"spec": {"deployment": {"seedSelector": {}}}},
            ["spec.deployment.seedSelector"],
        ),
        (
            resources.NAMESPACED_CLOUD_PROFILES,
            {"spec": {"kubernetes": {"versions": [{"version": "1.29.2", "classification": "preview"}]}}},
            ["spec.kubernetes.versions[0].classification"],
        ),
        (
            resources.NAMESPACED_CLOUD_PROFILES,
            {
                "spec": {
                    "machineImages": [
                        {
                            "name": "os",
                            "updateStrategy": "minor",
                            "versions": [{"version": "1", "cri": [], "architectures": ["amd64"]}],
                        }
                    ]
                }
            },
            [
                "spec.machineImages[0].updateStrategy",
                "spec.machineImages[0].versions[0].cri",
                "spec.machineImages[0].versions[0].architectures",
            ],
        ),
        (
            resources.MANAGED_SEED_SETS,
            {"spec": {"template": {"spec": {"shoot": {"name": "s"}}}}},
            ["spec.template.spec.shoot"],
        ),
        (resources.MANAGED_SEEDS, {"spec": {"gardenlet": None}}, ["spec"]),
        (resources.MANAGED_SEEDS, {"spec": {"seedTemplate": {}}}, ["spec"]),
        (resources.MANAGED_SEEDS, {"spec": WITHOUT_GARDENLET}, []),
        (resources.MANAGED_SEED_SETS, {"spec": {"template": {"spec": {"gardenlet": None}}}}, ["spec.template.spec"]),
        (resources.MANAGED_SEED_SETS, {"spec": {"template": {"spec": WITHOUT_GARDENLET}}}, []),
        (resources.MANAGED_SEED_SETS, {"spec": {"selector": {"matchLabels": {"set": None}}}}, ["spec.selector"]),
        (resources.MANAGED_SEED_SETS, {"status": {"replicas": 1, "readyReplicas": 1}}, []),
        (resources.MANAGED_SEED_SETS, {"status": {"replicas": 1, "readyReplicas": 2}}, ["status.readyReplicas"]),
        *(
            (
                resources.MANAGED_SEED_SETS,
                {
                    "status": {
                        "pendingReplica": {"name": name, "reason": "SeedNotReady", "since": "2026-01-01T00:00:00Z"}
                    }
                },
                wrong,
            )
            for name, wrong in (
                ("thing-12", []),
                ("thing", ["status.pendingReplica.name"]),
                ("thing-x", ["status.pendingReplica.name"]),
                ("other-1", ["status.pendingReplica.name"]),
            )
        ),
        (resources.SEED_AUTOSCALERS, {"spec": {"minReplicas": 4}}, ["spec.maxReplicas"]),
        (
            resources.OPEN_ID_CONNECT_PRESETS,
            {"spec": {"client": {"extraConfig": {"client-secret": "s"}}}},
            ["spec.client.extraConfig"],
        ),
    ],
)
def test_objects_are_refused_at_the_field_that_is_wrong(resource: Resource, patch: Object, expected: list[str]) -> None:
    assert fields(resource, filled(resource, merged(garden_object(resource), patch))) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ({"minimum": 3}, ["spec.provider.workers[0].maximum"]),
        ({"minimum": 0, "maximum": 0}, []),
        ({"maxSurge": 0}, ["spec.provider.workers[0].maxUnavailable"]),
        ({"maxSurge": "0%", "maxUnavailable": "0%"}, ["spec.provider.workers[0].maxUnavailable"]),
        ({"maxSurge": 0, "maxUnavailable": "10%"}, []),
    ],
)
def test_pools_have_a_size_with_which_they_can_be_rolled(size: Object, expected: list[str]) -> None:
    shoot = filled(resources.SHOOTS, garden_object(resources.SHOOTS))
    (worker,) = shoot["spec"]["provider"]["workers"]
    worker.update(size)
    assert fields(resources.SHOOTS, shoot) == expected


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        ({}, {"region": "other"}, ["spec.region"]),
        ({}, {"exposureClassName": "c"}, ["spec.exposureClassName"]),
        ({}, {"networking": None}, ["spec.networking.type", "spec.networking.ipFamilies"]),
        ({}, {"networking": {"pods": "10.0.0.0/16"}}, []),
        ({"networking": {"pods": "10.0.0.0/16"}}, {"networking": {"pods": None}}, ["spec.networking.pods"]),
        ({}, {"dns": {"domain": "a.example.com"}}, []),
        ({"dns": {"domain": "a.example.com"}}, {"dns": {"domain": "b.example.com"}}, ["spec.dns.domain"]),
        ({"dns": {}}, {"dns": None}, ["spec.dns"]),
        ({}, CREDENTIALS, []),
        ({}, {"secretBindingName": "other"}, ["spec.secretBindingName"]),
        (CREDENTIALS, {"credentialsBindingName": "other"}, []),
        (CREDENTIALS, {"credentialsBindingName": None}, ["spec.credentialsBindingName", "spec.secretBindingName"]),
        (
            CREDENTIALS,
            {"credentialsBindingName": None, "secretBindingName": "sb"},
            ["spec.credentialsBindingName", "spec.secretBindingName"],
        ),
        ({}, WORKERLESS, ["spec.secretBindingName", "spec.provider.workers"]),
        ({}, NAMESPACED_PROFILE, []),
        (NAMESPACED_PROFILE, {"cloudProfile": {"kind": "CloudProfile", "name": "local"}}, ["spec.cloudProfile"]),
        ({}, {"cloudProfile": {"name": "other"}}, ["spec.cloudProfile"]),
        ({}, ON_A_SEED, []),
        ({}, SELECTOR, []),
        (ON_A_SEED, SELECTOR, ["spec.seedSelector"]),
        (
            {**ON_A_SEED, **SELECTOR},
            {"seedSelector": {"matchLabels": {"a": "c"}}},
            ["spec.seedSelector"],
        ),
        ({**ON_A_SEED, **SELECTOR}, {"seedSelector": None}, []),
        ({}, HA, []),
        (HA, HA_ZONE, []),
        ({**HA, **ON_A_SEED}, HA_ZONE, [HA_TYPE]),
        ({**HA, **ON_A_SEED}, {"controlPlane": None}, [HA_TYPE]),
        (
            {"kubernetes": {"kubeControllerManager": {"nodeCIDRMaskSize": 24}}},
            {"kubernetes": {"kubeControllerManager": {"nodeCIDRMaskSize": 23}}},
            ["spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"],
        ),
    ],
)
def test_changes_of_a_shoot(before: Object, change: Object, expected: list[str]) -> None:
    old = filled(resources.SHOOTS, merged(garden_object(resources.SHOOTS), {"spec": before}))
    new = filled(resources.SHOOTS, merged(old, {"spec": change}))
    assert sorted(fields(resources.SHOOTS, new, old)) == sorted(expected)


@pytest.mark.parametrize(
    ("resource", "before", "change", "expected"),
    [
        (resources.SHOOTS, {"status": {"uid": ""}}, {"status": {"uid": "u"}}, []),
        (resources.SHOOTS, {"status": {"uid": "u"}}, {"status": {"uid": "v"}}, ["status.uid"]),
        (
            resources.PROJECTS,
            {"spec": {"owner": {"kind": "User", "name": "a"}}},
            {"spec": {"owner": None}},
            ["spec.owner"],
        ),
        (resources.PROJECTS, {"status": {"phase": "Ready"}}, {"status": {"phase": None}}, ["status.phase"]),
        (resources.INTERNAL_SECRETS, {}, {"data": {"a": "Yg=="}}, []),
        (resources.INTERNAL_SECRETS, {"immutable": True}, {"data": {"a": "Yg=="}}, ["data"]),
        (resources.INTERNAL_SECRETS, {"immutable": True}, {"immutable": None}, ["immutable"]),
        (resources.MANAGED_SEEDS, {}, {"spec": WITHOUT_GARDENLET}, ["spec"]),
        (resources.MANAGED_SEEDS, {"spec": WITHOUT_GARDENLET}, {"spec": {"seedTemplate": SEED_TAINTED}}, []),
        (
            resources.MANAGED_SEEDS,
            {"spec": WITHOUT_GARDENLET},
            {"spec": {"seedTemplate": None, "gardenlet": {}}},
            ["spec"],
        ),
        (
            resources.MANAGED_SEED_SETS,
            {},
            {"spec": {"template": {"spec": WITHOUT_GARDENLET}}},
            ["spec.template.spec"],
        ),
        (resources.MANAGED_SEED_SETS, {"status": {"nextReplicaNumber": 2}}, {"status": {"nextReplicaNumber": 3}}, []),
        (
            resources.MANAGED_SEED_SETS,
            {"status": {"nextReplicaNumber": 2}},
            {"status": {"nextReplicaNumber": 1}},
            ["status.nextReplicaNumber"],
        ),
        (
            resources.SEEDS,
            {},
            {"spec": {"backup": {"provider": "a", "secretRef": {"name": "s", "namespace": "n"}}}},
            [],
        ),
        (
            resources.SEEDS,
            {"spec": {"backup": {"provider": "a", "secretRef": {"name": "s", "namespace": "n"}}}},
            {"spec": {"backup": {"region": "r"}}},
            ["spec.backup.region"],
        ),
        (
            resources.CONTROLLER_REGISTRATIONS,
            {},
            {"spec": {"resources": [{"kind": "Extension", "type": "e", "primary": False}]}},
            ["spec.resources"],
        ),
        (
            resources.CONTROLLER_REGISTRATIONS,
            {"spec": {"resources": [{"kind": "Worker", "type": "e", "primary": each} for each in (True, False)]}},
            {"metadata": {"labels": {"a": "b"}}},
            [],
        ),
        (resources.EXPOSURE_CLASSES, {}, {"scheduling": None}, ["scheduling"]),
        (resources.SECRET_BINDINGS, {}, {"quotas": [{"name": "q"}]}, ["quotas"]),
    ],
)
def test_changes_of_other_kinds(resource: Resource, before: Object, change: Object, expected: list[str]) -> None:
    old = filled(resource, merged(garden_object(resource), before))
    assert fields(resource, filled(resource, merged(old, change)), old) == expected
