"""The CustomResourceDefinitions of the garden API on a real API server, without any webhook.

The control plane is of this file alone: definitions belong to a whole cluster, and the webhooks of other tests' gardens
must not see these objects.
"""

import copy
import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api import garden as resources
from gardener.api import structural
from gardener.api.definition import Definition
from gardener.api.garden.definitions import DEFINITIONS
from kit.garden_objects import garden_object
from kit.kinds import wait_until_served
from kube.errors import ApiError
from kube.objects import Object, condition
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

FILES = Path(__file__).parents[2] / "manifests" / "crds" / "garden"
NAMESPACE = "default"

each = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda one: one.resource.kind)


def kubectl(cluster: Cluster, *arguments: str) -> str:
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def garden(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        kubectl(cluster, "apply", "--server-side", "-k", str(FILES))
        wait_until_served(cluster, *(one.resource.path() for one in DEFINITIONS))
        yield cluster


def served(cluster: Cluster) -> list[Object]:
    found = cluster.api.get(CUSTOM_RESOURCE_DEFINITIONS.path())["items"]
    return [one for one in found if one["metadata"]["name"] in NAMES]


def holds(definition: Object, of: str) -> bool:
    return (condition(definition, of) or {}).get("status") == "True"


NAMES = {f"{one.resource.plural}.{one.resource.group}" for one in DEFINITIONS}


def path(resource: Resource, name: str = "", subresource: str = "") -> str:
    return resource.path(namespace=NAMESPACE if resource.namespaced else "", name=name, subresource=subresource)


def example(resource: Resource, name: str = "thing") -> Object:
    return garden_object(resource, name, namespace=NAMESPACE)


def created(cluster: Cluster, obj: Object, resource: Resource) -> Object:
    """As the API server would store it."""
    return cluster.api.create(f"{path(resource)}?dryRun=All", obj)


def test_all_definitions_are_served_as_they_are_written(garden: Cluster) -> None:
    found = served(garden)
    assert {one["metadata"]["name"] for one in found} == NAMES
    assert not [one["metadata"]["name"] for one in found if holds(one, "NonStructuralSchema")]
    assert "serverside-applied" in kubectl(garden, "apply", "--server-side", "-k", str(FILES))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("shoot.spec.maintenance", ("maintenance time window", "30 minutes to 6 hours", "webhooks choose an hour")),
        ("shoot.spec.kubernetes.clusterAutoscaler.scaleDownUnneededTime", ("unneeded", "Default: 30m0s")),
        ("seed.spec.settings.scheduling.visible", ("scheduler", "Default: true")),
        ("project.spec.members.roles", ("owner", "serviceaccountmanager")),
        ("quota.spec.clusterLifetimeDays", ("Days", "Default: no limit")),
        ("managedseed.spec.gardenlet.bootstrap", ("BootstrapToken", "ServiceAccount")),
    ],
)
def test_explain_reports_meaning_default_and_unit(garden: Cluster, field: str, words: tuple[str, ...]) -> None:
    explained = " ".join(kubectl(garden, "explain", field).split())
    assert not [word for word in words if word not in explained], explained


@each
def test_an_object_is_stored_as_computed_offline(garden: Cluster, definition: Definition) -> None:
    obj = example(definition.resource)
    stored = created(garden, obj, definition.resource)
    expected = structural.with_defaults(definition.schema, obj)
    assert {**stored, "metadata": None} == {**expected, "metadata": None}
    assert structural.errors(definition.schema, stored, old=stored) == []


@each
def test_other_fields_are_reported_and_not_stored(garden: Cluster, definition: Definition) -> None:
    obj = {**example(definition.resource), "other": {"a": 1}}
    assert structural.unknown_fields(definition.schema, obj) == ["other"]
    assert "other" not in created(garden, obj, definition.resource)
    with pytest.raises(ApiError, match='unknown field "other"'):
        garden.api.create(f"{path(definition.resource)}?dryRun=All&fieldValidation=Strict", obj)


BROKEN: tuple[Any, ...] = (
    "",
    None,
    -1,
    0,
    3,
    2.5,
    True,
    [],
    {},
    "x" * 300,
    ["a", "a"],
    {"a": "b"},
    "UPPER",
    "1h",
    10**12,
)


def broken(obj: Object, chance: random.Random) -> Object:
    """The object with a field or two that are missing, twice there, not known, or something else."""
    obj = copy.deepcopy(obj)
    for _ in range(chance.choice((1, 1, 2))):
        inside = [place for field in obj.keys() - {"apiVersion", "kind", "metadata"} for place in places(obj, field)]
        holder, where = chance.choice(inside)
        match chance.choice(("remove", "twice", "unknown", "replace", "replace")):
            case "remove" if isinstance(holder, dict):
                del holder[where]
            case "twice" if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[where]))
            case "unknown" if isinstance(holder, dict):
                holder["unknownField"] = 1
            case _:
                holder[where] = copy.deepcopy(chance.choice(BROKEN))
        if not obj.keys() - {"apiVersion", "kind", "metadata"}:
            break
    return obj


def places(holder: Any, where: Any) -> Iterator[tuple[Any, Any]]:
    yield holder, where
    match holder[where]:
        case dict() as inner:
            for field in inner:
                yield from places(inner, field)
        case list() as inner:
            for index in range(len(inner)):
                yield from places(inner, index)


def findings(error: ApiError) -> set[tuple[str, str]]:
    """Path and text of each; those about the subresource `scale`, which is not of the schema, are left out."""
    return {(cause["field"], cause["message"]) for cause in error.causes if not cause["field"].startswith(".")}


@each
def test_findings_offline_are_those_of_the_api_server(garden: Cluster, definition: Definition) -> None:
    resource, schema = definition.resource, definition.schema
    chance = random.Random(resource.kind)
    name = "found"
    old = garden.api.create(path(resource), example(resource, name))
    try:
        for _ in range(25):
            changed = broken(old, chance)
            new = structural.pruned(schema, structural.with_defaults(schema, changed))
            found = {(error.path, error.body) for error in structural.errors(schema, new, old=old)}
            status, answer = garden.api.raw("PUT", f"{path(resource, name)}?dryRun=All", changed)
            assert found == found_there(status, answer), json.dumps(changed)
    finally:
        garden.api.delete(path(resource, name))


def found_there(status: int, answer: bytes) -> set[tuple[str, str]]:
    if status < 400:
        return set()
    refused = json.loads(answer)
    assert status == 422, refused
    return findings(ApiError(status, message=refused["message"], details=refused["details"]))


CHANGES = [
    (resources.SHOOTS, {"region": "other"}, "spec.region"),
    (resources.SHOOTS, {"networking": {"type": "cilium"}}, "spec.networking.type"),
    (resources.SHOOTS, {"networking": {"ipFamilies": ["IPv6"]}}, "spec.networking.ipFamilies"),
    (resources.SHOOTS, {"schedulerName": "other"}, "spec.schedulerName"),
    (resources.SHOOTS, {"secretBindingName": "other"}, "spec.secretBindingName"),
    (resources.SHOOTS, {"provider": {"type": "other"}}, "spec.provider.type"),
    (resources.SEEDS, {"networks": {"pods": "10.99.0.0/16"}}, "spec.networks.pods"),
    (resources.SEEDS, {"networks": {"nodes": None}}, "spec.networks.nodes"),
    (resources.SEEDS, {"ingress": {"domain": "other.example.com"}}, "spec.ingress.domain"),
    (resources.QUOTAS, {"scope": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}}, "spec.scope"),
    (resources.BACKUP_BUCKETS, {"seedName": "other"}, "spec.seedName"),
    (resources.BASTIONS, {"shootRef": {"name": "other"}}, "spec.shootRef"),
    (resources.MANAGED_SEEDS, {"gardenlet": {"mergeWithParent": False}}, "spec.gardenlet.mergeWithParent"),
    (resources.CONTROLLER_INSTALLATIONS, {"seedRef": {"name": "other"}}, "spec.seedRef.name"),
    (resources.NAMESPACED_CLOUD_PROFILES, {"parent": {"name": "other"}}, "spec.parent"),
]


@pytest.mark.parametrize(("resource", "change", "field"), CHANGES, ids=[f"{one[0].kind}-{one[2]}" for one in CHANGES])
def test_what_is_immutable_reports_so_at_its_path(
    garden: Cluster, resource: Resource, change: Object, field: str
) -> None:
    name = f"fixed-{CHANGES.index((resource, change, field))}"
    garden.api.create(path(resource), example(resource, name))
    with pytest.raises(ApiError) as refused:
        garden.api.patch(path(resource, name), {"spec": change})
    assert (field, "Invalid value: field is immutable") in findings(refused.value), refused.value


def test_a_shoot_with_fifty_pools_is_stored_as_it_was_sent(garden: Cluster) -> None:
    shoot = example(resources.SHOOTS, "large")
    (pool,) = shoot["spec"]["provider"]["workers"]
    shoot["spec"]["provider"]["workers"] = [{**pool, "name": f"pool-{number}"} for number in range(50)]
    stored = garden.api.create(path(resources.SHOOTS), shoot)
    sent = structural.with_defaults(next(one for one in DEFINITIONS if one.resource == resources.SHOOTS).schema, shoot)
    assert stored["spec"] == sent["spec"]


def test_a_cloud_profile_of_a_megabyte_is_stored_as_it_was_sent(garden: Cluster) -> None:
    profile = example(resources.CLOUD_PROFILES, "large")
    version = {"expirationDate": "2040-01-01T00:00:00Z", "cri": [{"name": "containerd"}], "architectures": ["amd64"]}
    profile["spec"]["machineImages"] = [
        {
            "name": f"os-{image}",
            "updateStrategy": "minor",
            "versions": [{"version": f"{image}.{number}.0", **version} for number in range(100)],
        }
        for image in range(5)
    ]
    images = [{"name": f"os-{image}", "ids": ["x" * 100] * 2000} for image in range(5)]
    profile["spec"]["providerConfig"] = {
        "apiVersion": "local/v1",
        "kind": "CloudProfileConfig",
        "machineImages": images,
    }
    assert 1_000_000 < len(json.dumps(profile["spec"])) < 1_300_000
    stored = garden.api.create(path(resources.CLOUD_PROFILES), profile)
    for field in ("machineImages", "providerConfig"):
        assert stored["spec"][field] == profile["spec"][field]


def test_shoots_can_be_selected_by_their_seed(garden: Cluster) -> None:
    for name, seed in (("here", "seed-a"), ("there", "seed-b")):
        shoot = example(resources.SHOOTS, name)
        shoot["spec"]["seedName"] = seed
        garden.api.create(path(resources.SHOOTS), shoot)
    found = garden.api.get(f"{resources.SHOOTS.path()}?fieldSelector=spec.seedName%3Dseed-b")["items"]
    assert [one["metadata"]["name"] for one in found] == ["there"]


def test_a_shoot_is_shown_with_its_columns(garden: Cluster) -> None:
    garden.api.create(path(resources.SHOOTS), example(resources.SHOOTS, "shown"))
    operation = {
        "type": "Reconcile",
        "state": "Processing",
        "progress": 42,
        "description": "d",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    state = {"status": {"lastOperation": operation}, "metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}}
    garden.api.patch(path(resources.SHOOTS, "shown", "status"), state)
    garden.api.patch(path(resources.SHOOTS, "shown"), {"metadata": state["metadata"]})
    header, line = kubectl(garden, "get", "shoot", "shown", "-n", NAMESPACE).splitlines()
    assert header.split()[:5] == ["NAME", "CLOUDPROFILE", "PROVIDER", "REGION", "K8S"]
    assert line.split()[:10] == [
        "shown",
        "local",
        "local",
        "local",
        "1.30.1",
        "false",
        "Reconcile",
        "Processing",
        "42",
        "healthy",
    ]


def test_a_managed_seed_set_can_be_scaled(garden: Cluster) -> None:
    sets = resources.MANAGED_SEED_SETS
    garden.api.create(path(sets), example(sets, "scaled"))
    garden.api.patch(path(sets, "scaled", "status"), {"status": {"replicas": 1, "selector": "set=s"}})
    kubectl(garden, "scale", "managedseedset", "scaled", "-n", NAMESPACE, "--replicas=3")
    scale = garden.api.get(path(sets, "scaled", "scale"))
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 1, "selector": "set=s"})


def test_two_writers_share_the_conditions_of_a_seed(garden: Cluster) -> None:
    garden.api.create(path(resources.SEEDS), example(resources.SEEDS, "shared"))
    now = "2026-01-01T00:00:00Z"
    for kind in ("GardenletReady", "ExtensionsReady"):
        entry = {"type": kind, "status": "True", "reason": "R", "message": "m"}
        status = {"conditions": [{**entry, "lastTransitionTime": now, "lastUpdateTime": now}]}
        obj = {
            **resources.SEEDS.type_meta,
            "metadata": {"name": "shared"},
            "status": status,
        }
        where = f"{path(resources.SEEDS, 'shared', 'status')}?fieldManager={kind}"
        garden.api.request("PATCH", where, obj, content_type="application/apply-patch+yaml")
    stored = garden.api.get(path(resources.SEEDS, "shared"))["status"]["conditions"]
    assert {one["type"] for one in stored} == {"GardenletReady", "ExtensionsReady"}


def test_the_count_of_operations_does_not_fall(garden: Cluster) -> None:
    shoot = {**example(resources.SHOOTS, "counted"), "operation": {"sequence": 2}}
    stored = garden.api.create(path(resources.SHOOTS), shoot)
    raised = garden.api.patch(path(resources.SHOOTS, "counted"), {"operation": {"sequence": 3}})
    assert raised["metadata"]["generation"] == stored["metadata"]["generation"] + 1
    with pytest.raises(ApiError, match=r"operation\.sequence: Invalid value: may not decrease"):
        garden.api.patch(path(resources.SHOOTS, "counted"), {"operation": {"sequence": 2}})


def test_an_entry_of_a_shoot_state_may_have_no_data(garden: Cluster) -> None:
    """As the original stores it of a Shoot without machines."""
    entry = {"name": "machine-state", "type": "machine-state", "data": None}
    obj = {**example(resources.SHOOT_STATES), "spec": {"gardener": [entry]}}
    assert created(garden, obj, resources.SHOOT_STATES)["spec"]["gardener"] == [entry]
