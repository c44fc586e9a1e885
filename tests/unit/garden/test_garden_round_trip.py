"""Manifests as people write them: accepted, and unchanged but for what is documented as a default."""

import orjson
import pytest

from gardener.api import garden as resources
from gardener.api.garden.definitions import definition
from gardener.api.structural import errors, pruned, unknown_fields, with_defaults
from kit.large_objects import images, lost, pools, provider_config
from kit.webhooks.garden import Asked
from kit.webhooks.shoots import GARDEN, PROFILE, submitted, with_fields, worker
from kube.objects import Object
from kube.resources import Resource
from webhooks.garden.common.descriptor import Kind
from webhooks.garden.kinds.cloud_profile import CLOUD_PROFILE
from webhooks.garden.kinds.shoot.kind import SHOOT
from webhooks.garden.registry import KINDS

_GARDENLET_CONFIG: Object = {
    "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
    "kind": "GardenletConfiguration",
    "seedConfig": {"spec": {"provider": {"type": "gcp", "region": "europe-west1"}}},
}
_DEPLOYMENT: Object = {
    "replicaCount": 1,
    "revisionHistoryLimit": 10,
    "serviceAccountName": "gardenlet",
    "image": {"repository": "registry.example.com/gardenlet", "tag": "latest", "pullPolicy": "IfNotPresent"},
    "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
    "podLabels": {"a": "b"},
    "podAnnotations": {"a": "b"},
    "additionalVolumes": [{"name": "v", "emptyDir": {}}],
    "additionalVolumeMounts": [{"name": "v", "mountPath": "/v"}],
    "env": [{"name": "A", "value": "b"}],
}
_POOL = {"name": "w", "machine": {"type": "n1-standard-4"}, "minimum": 1, "maximum": 2}
_LABELS = {"metadata": {"labels": {"foo": "bar"}}}
_AUTOSCALED: Object = {
    "scaleTargetRef": {
        "apiVersion": resources.MANAGED_SEED_SETS.api_version,
        "kind": "ManagedSeedSet",
        "name": "crazy-botany",
    },
    "minReplicas": 1,
    "maxReplicas": 10,
    "metrics": [
        {
            "type": "Resource",
            "resource": {"name": "shoots", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
    ],
}
SHOWN: list[tuple[Resource, Object]] = [
    (
        resources.MANAGED_SEEDS,
        {"shoot": {"name": "crazy-botany"}, "gardenlet": {"deployment": _DEPLOYMENT, "config": _GARDENLET_CONFIG}},
    ),
    (
        resources.MANAGED_SEEDS,
        {
            "shoot": {"name": "crazy-botany"},
            "seedTemplate": {
                **_LABELS,
                "spec": {
                    "provider": {"type": "gcp", "region": "europe-west1"},
                    "taints": [{"key": "seed.gardener.cloud/protected"}],
                },
            },
        },
    ),
    (
        resources.MANAGED_SEED_SETS,
        {
            "replicas": 3,
            "selector": {"matchLabels": {"foo": "bar"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
            "template": {**_LABELS, "spec": {"gardenlet": {"config": _GARDENLET_CONFIG}}},
            "shootTemplate": {
                **_LABELS,
                "spec": {
                    "cloudProfileName": "gcp",
                    "secretBindingName": "shoot-operator-gcp",
                    "region": "europe-west1",
                    "provider": {"type": "gcp", "workers": [_POOL]},
                    "networking": {"type": "calico"},
                    "kubernetes": {"version": "1.30.1"},
                },
            },
        },
    ),
    (resources.SEED_AUTOSCALERS, _AUTOSCALED),
]


@pytest.mark.parametrize(("resource", "spec"), SHOWN, ids=lambda each: getattr(each, "kind", ""))
def test_what_documents_show_fits_the_schema_and_nothing_of_it_is_lost(resource: Resource, spec: Object) -> None:
    known = definition(group=resource.group, kind=resource.kind)
    assert known is not None
    meta = {"name": "crazy-botany", "namespace": "garden"}
    obj = {**resource.type_meta, "metadata": meta, "spec": spec}
    assert unknown_fields(known.schema, obj) == []
    stored = with_defaults(known.schema, obj)
    assert errors(known.schema, stored) == []
    assert pruned(known.schema, stored) == stored
    assert lost(obj, stored) == []


def test_a_shoot_of_many_fields_is_stored_as_it_was_written() -> None:
    kind: Kind = next(each for each in KINDS if each.resource == resources.SHOOTS)
    written = submitted(
        purpose="production",
        kubernetes__version="1.30.5",
        maintenance={
            "timeWindow": {"begin": "220000+0100", "end": "230000+0100"},
            "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": False},
        },
        hibernation={"schedules": [{"start": "00 20 * * 1,2,3,4,5", "end": "00 6 * * *"}]},
        networking={"type": "calico", "pods": "100.96.0.0/11", "services": "100.64.0.0/13", "nodes": "10.250.0.0/16"},
    )
    outcome = Asked(kind, garden=GARDEN).create(written)
    assert outcome.status is None, outcome.message
    assert lost(written, outcome.object) == []


def test_a_shoot_with_many_pools_is_stored_as_it_was_written() -> None:
    written = submitted(provider={"type": "local", "workers": pools(worker())})
    outcome = Asked(SHOOT, garden=GARDEN).create(written)
    assert outcome.status is None, outcome.message
    assert lost(written, outcome.object) == []
    again = Asked(SHOOT, garden=GARDEN).update(outcome.object, outcome.object)
    assert (again.status, again.object["spec"]) == (None, outcome.spec)


def test_a_cloud_profile_of_a_megabyte_is_stored_as_it_was_written() -> None:
    written = with_fields(
        PROFILE, spec__machineImages=images("linux"), spec__kubernetes__versions=[{"version": "1.30.5"}]
    )
    written["spec"]["providerConfig"] = provider_config(written["spec"]["machineImages"])
    assert 900_000 < len(orjson.dumps(written)) < 1_100_000
    outcome = Asked(CLOUD_PROFILE).create(written)
    assert outcome.status is None, outcome.message
    assert lost(written, outcome.object) == []
    again = Asked(CLOUD_PROFILE).update(outcome.object, outcome.object)
    assert (again.status, again.object["spec"]) == (None, outcome.spec)
