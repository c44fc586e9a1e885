"""The CustomResourceDefinitions of a seed on a real API server.

The control plane is of this file alone: other tests define some of these kinds as open ones.
"""

import copy
import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api import druid, extensions, kinds
from gardener.api.definition import Definition
from gardener.api.seed_definitions import DEFINITIONS, Stage, custom_resource_definitions
from kit.kinds import wait_until_served
from kit.managed_resources import install_crd
from kube.errors import ApiError
from kube.objects import Object
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

CONFORMANCE = Path(__file__).parents[1] / "conformance"
RECORDED = CONFORMANCE / "gardenlet" / "extension_objects.yaml"
NAMESPACE = "default"
KINDS: dict[str, Definition] = {one.resource.kind: one for one in chain.from_iterable(DEFINITIONS.values())}
CUSTOM = {kind: one.resource for kind, one in KINDS.items()}


@pytest.fixture(scope="module")
def seed(devcluster_run: RunClusters) -> Iterator[Cluster]:
    with Cluster() as cluster:
        for definition in chain.from_iterable(map(custom_resource_definitions, Stage)):
            cluster.api.create(CUSTOM_RESOURCE_DEFINITIONS.path(), definition)
        install_crd(cluster)
        wait_until_served(cluster, *(one.resource.path() for one in KINDS.values()))
        yield cluster


def path(resource: Resource, name: str = "", subresource: str = "") -> str:
    return resource.path(namespace=NAMESPACE if resource.namespaced else "", name=name, subresource=subresource)


def recorded() -> list[Object]:
    return list(yaml.safe_load_all(RECORDED.read_text()))


def example(resource: Resource, name: str, **spec: Any) -> Object:
    """The recorded object of the kind under another name; `spec` has fields to change."""
    found = next(copy.deepcopy(one) for one in recorded() if one["kind"] == resource.kind)
    found["metadata"] = {"name": name, **({"namespace": NAMESPACE} if resource.namespaced else {})}
    return {**found, "spec": {**found["spec"], **spec}}


def test_all_definitions_are_valid(seed: Cluster) -> None:
    for definition in seed.api.get(CUSTOM_RESOURCE_DEFINITIONS.path())["items"]:
        found = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
        # The others are there for some groups, or in case of problems.
        assert {"NonStructuralSchema": "False", "KubernetesAPIApprovalPolicyConformant": "True", **found} == {
            "Established": "True",
            "NamesAccepted": "True",
            "NonStructuralSchema": "False",
            "KubernetesAPIApprovalPolicyConformant": "True",
        }


@pytest.mark.parametrize("obj", recorded(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_recorded_objects_and_their_status_are_stored_as_they_are(seed: Cluster, obj: Object) -> None:
    resource = KINDS[obj["kind"]].resource
    name = obj["metadata"]["name"]
    new = {**obj, "metadata": {**obj["metadata"], **({"namespace": NAMESPACE} if resource.namespaced else {})}}
    seed.api.create(path(resource), new)
    stored = seed.api.patch(path(resource, name, "status"), {"status": obj["status"]})
    assert {"spec": stored["spec"], "status": stored["status"]} == {"spec": obj["spec"], "status": obj["status"]}


BASTION = {
    "apiVersion": "extensions.gardener.cloud/v1alpha1",
    "kind": "Bastion",
    "spec": {"type": "local", "userData": "eA==", "ingress": [{"ipBlock": {"cidr": "203.0.113.0/24"}}]},
}
RUNTIME = {
    "apiVersion": "extensions.gardener.cloud/v1alpha1",
    "kind": "ContainerRuntime",
    "spec": {"type": "local", "binaryPath": "/bin", "workerPool": {"name": "a", "selector": {}}},
}


@pytest.mark.parametrize(
    ("resource", "change"),
    [
        *((KINDS[kind].resource, {"type": "other"}) for kind in ("BackupBucket", "BackupEntry", "Extension", "Worker")),
        *((KINDS[kind].resource, {"region": "other"}) for kind in ("BackupBucket", "ControlPlane", "Infrastructure")),
        (extensions.WORKERS, {"region": "other"}),
        (extensions.CONTROL_PLANES, {"purpose": "exposure"}),
        (extensions.DNS_RECORDS, {"name": "other.example.com"}),
        (extensions.DNS_RECORDS, {"recordType": "TXT"}),
        (extensions.NETWORKS, {"podCIDR": "10.9.0.0/16"}),
        (extensions.NETWORKS, {"serviceCIDR": "10.9.0.0/16"}),
        (extensions.OPERATING_SYSTEM_CONFIGS, {"purpose": "reconcile"}),
        (extensions.BASTIONS, {"userData": "eQ=="}),
        (extensions.CONTAINER_RUNTIMES, {"workerPool": {"name": "b"}}),
    ],
    ids=lambda one: one.kind if isinstance(one, Resource) else next(iter(one)),
)
def test_what_identifies_a_thing_does_not_change(seed: Cluster, resource: Resource, change: Object) -> None:
    name = f"fixed-{next(iter(change)).lower()}"
    own = {"Bastion": BASTION, "ContainerRuntime": RUNTIME}.get(resource.kind)
    seed.api.create(path(resource), {**own, "metadata": {"name": name}} if own else example(resource, name))
    with pytest.raises(ApiError, match="field is immutable"):
        seed.api.patch(path(resource, name), {"spec": change})


def test_a_class_can_be_added_and_then_stays(seed: Cluster) -> None:
    where = path(extensions.EXTENSIONS, "class")
    seed.api.create(path(extensions.EXTENSIONS), example(extensions.EXTENSIONS, "class"))
    seed.api.patch(where, {"spec": {"class": "seed"}})
    with pytest.raises(ApiError, match="field is immutable"):
        seed.api.patch(where, {"spec": {"class": "shoot"}})


def test_a_backup_entry_may_move_to_another_bucket(seed: Cluster) -> None:
    seed.api.create(path(extensions.BACKUP_ENTRIES), example(extensions.BACKUP_ENTRIES, "moved"))
    moved = seed.api.patch(path(extensions.BACKUP_ENTRIES, "moved"), {"spec": {"bucketName": "other"}})
    assert moved["spec"]["bucketName"] == "other"


def test_a_worker_may_have_a_hundred_pools(seed: Cluster) -> None:
    obj = example(extensions.WORKERS, "large")
    (pool,) = obj["spec"]["pools"]
    pool.pop("userData")
    pools = [{**pool, "name": f"pool-{number}", "labels": {"a" * 63: "b" * 63}} for number in range(100)]
    stored = seed.api.create(path(extensions.WORKERS), {**obj, "spec": {**obj["spec"], "pools": pools}})
    assert stored["spec"]["pools"] == pools
    assert len(json.dumps(stored)) < 1 << 19


def test_an_etcd_can_be_scaled(seed: Cluster) -> None:
    seed.api.create(path(druid.ETCDS), example(druid.ETCDS, "scaled"))
    seed.api.patch(path(druid.ETCDS, "scaled", "scale"), {"spec": {"replicas": 3}})
    assert seed.api.get(path(druid.ETCDS, "scaled"))["spec"]["replicas"] == 3


def test_open_kinds_keep_all_fields_in_each_version(seed: Cluster) -> None:
    spec = {"targetRef": {"kind": "Deployment", "name": "a"}, "updatePolicy": {"updateMode": "Off", "new": {"b": 1}}}
    resource = kinds.VERTICAL_POD_AUTOSCALERS
    obj = {**resource.type_meta, "metadata": {"name": "open"}, "spec": spec}
    seed.api.create(path(resource), obj)
    assert seed.api.get(path(resource, "open").replace("/v1/", "/v1beta2/"))["spec"] == spec
    machine = {**kinds.MACHINES.type_meta, "metadata": {"name": "open"}, "spec": {"class": {"kind": "MachineClass"}}}
    assert seed.api.create(path(kinds.MACHINES), machine)["spec"] == machine["spec"]


CHARTS: dict[str, Object] = yaml.safe_load((CONFORMANCE / "extensions" / "charts.yaml").read_text())
"""Objects and rights in the charts of extensions."""
NOT_SERVED = {"*", "ippools", *(f"{one.plural}/finalizers" for one in CUSTOM.values()), "namespaces/finalizers"}
"""Names in roles: for all kinds, of another network plugin, and of rights to owner references."""
IN_CHARTS: dict[Resource, Object] = {
    CUSTOM["ClusterFilter"]: {
        "match": "kubernetes.*calico-node*calico-node*",
        "filters": [{"parser": {"keyName": "log", "parser": "calico-node-parser", "reserveData": True}}],
    },
    CUSTOM["ClusterParser"]: {"regex": {"regex": "^(?<log>.*)$", "timeKey": "time", "timeFormat": "%Y-%m-%d %H:%M"}},
    CUSTOM["PrometheusRule"]: {"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "up == 0", "for": "5m"}]}]},
    CUSTOM["ScrapeConfig"]: {
        "kubernetesSDConfigs": [{"role": "Endpoints", "namespaces": {"names": ["shoot--a--b"]}}],
        "relabelings": [{"action": "replace", "replacement": "calico", "targetLabel": "job"}],
    },
    CUSTOM["OpenTelemetryCollector"]: {"mode": "deployment", "config": {"receivers": {"otlp": {"protocols": {}}}}},
    CUSTOM["VerticalPodAutoscaler"]: {
        "resourcePolicy": {"containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]},
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
        "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
    },
}
"""Specs of objects in charts, and of those that extensions create."""


def resources(seed: Cluster, path: str) -> list[Object]:
    found: list[Object] = seed.api.get(path)["resources"]
    return found


@pytest.mark.parametrize("chart", CHARTS)
def test_the_kinds_of_charts_are_served(seed: Cluster, chart: str) -> None:
    for api_version, kind in (each.split(" ")[0].rsplit("/", 1) for each in CHARTS[chart]["objects"]):
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        assert kind in {each["kind"] for each in resources(seed, path)}


@pytest.mark.parametrize("chart", CHARTS)
def test_the_kinds_in_roles_of_charts_are_served(seed: Cluster, chart: str) -> None:
    versions = {one["name"]: one["versions"] for one in seed.api.get("/apis")["groups"]}
    for rule in CHARTS[chart]["rights"]:
        groups, _, rest = rule.partition(": ")[2].partition(" / ")
        paths = [f"/apis/{one['groupVersion']}" for group in groups.split(",") for one in versions.get(group, ())]
        served = {one["name"] for path in ("/api/v1", *paths) for one in resources(seed, path)}
        wanted = set(rest.rpartition(": ")[0].partition(" [")[0].split(","))
        assert wanted - served <= NOT_SERVED, rule


@pytest.mark.parametrize(("resource", "spec"), IN_CHARTS.items(), ids=lambda one: getattr(one, "kind", ""))
def test_objects_of_charts_lose_no_fields(seed: Cluster, resource: Resource, spec: Object) -> None:
    obj = {**resource.type_meta, "metadata": {"name": "of-chart"}, "spec": spec}
    assert seed.api.create(f"{path(resource)}?fieldValidation=Strict", obj)["spec"] == spec


@pytest.mark.parametrize(
    ("resource", "obj"),
    [
        (
            extensions.OPERATING_SYSTEM_CONFIGS,
            {
                "type": "gardenlinux",
                "purpose": "reconcile",
                "criConfig": {
                    "name": "containerd",
                    "containerd": {
                        "sandboxImage": "pause",
                        "registries": [
                            {
                                "upstream": "docker.io",
                                "hosts": [{"url": "https://a/v2/b", "capabilities": ["pull"], "overridePath": True}],
                            }
                        ],
                    },
                },
            },
        ),
        (
            druid.ETCDS,
            {
                "etcd": {"additionalAdvertisePeerURLs": [{"memberName": "a-0", "urls": ["https://a:2380"]}]},
                "backup": {},
                "replicas": 1,
            },
        ),
        (druid.ETCD_OPS_TASKS, {"etcdName": "main", "config": {"onDemandSnapshot": {"type": "full", "isFinal": True}}}),
        (
            extensions.SELF_HOSTED_SHOOT_EXPOSURES,
            {
                "type": "local",
                "port": 443,
                "endpoints": [{"nodeName": "a", "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}],
            },
        ),
    ],
    ids=lambda one: getattr(one, "kind", ""),
)
def test_fields_of_newer_releases_are_known(seed: Cluster, resource: Resource, obj: Object) -> None:
    sent = {**resource.type_meta, "metadata": {"name": "newer"}, "spec": obj}
    seed.api.create(f"{path(resource)}?fieldValidation=Strict", sent)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "should have at least 1 properties"),
        ({"onDemandSnapshot": {"type": "delta", "isFinal": True}}, "must not be set for delta snapshots"),
    ],
)
def test_an_operation_on_an_etcd_is_one_that_can_be(seed: Cluster, config: Object, message: str) -> None:
    obj = {**druid.ETCD_OPS_TASKS.type_meta, "metadata": {"name": "wrong"}, "spec": {"config": config}}
    with pytest.raises(ApiError, match=message):
        seed.api.create(path(druid.ETCD_OPS_TASKS), obj)
