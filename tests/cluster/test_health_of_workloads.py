"""Conditions, metrics and Events follow workloads that become healthy, degrade and recover; at rest nothing is asked.

The cluster is this file's own, since its nodes are drained.
"""

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from agent_process import AgentProcess
from managed_world import install_crd

from agent.api import MANAGED_RESOURCES
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, condition

NAMESPACE = "workloads"
NAMES = ("mr-0", "mr-1", "mr-2")
KINDS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"}
SETTLED = ("True", "True", "False")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PREFIX = "resource_manager_managed_resource"
CONFIG: dict[str, Any] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "leaderElection": {"leaderElect": False, "resourceNamespace": "default"},
    "sourceClientConnection": {"qps": 1000, "burst": 1000},
    "targetClientConnection": {"qps": 1000, "burst": 1000},
    "controllers": {"managedResource": {"syncPeriod": "15s"}, "health": {"syncPeriod": "15s"}},
}


class World:
    def __init__(self, cluster: Cluster, agent: AgentProcess) -> None:
        self.api = cluster.api
        self.agent = agent

    def write(self, *, image: str, replicas: int) -> None:
        """All Secrets."""
        for name in NAMES:
            documents = b"".join(b"---\n" + orjson.dumps(obj) + b"\n" for obj in manifests(name, image, replicas))
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name},
                "data": {"objects.yaml": base64.b64encode(documents).decode()},
            }
            self.api.apply(f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}", secret)

    def get(self, name: str) -> Object:
        return self.api.get(MANAGED_RESOURCES.path(namespace=NAMESPACE, name=name))

    def told(self, name: str) -> tuple[str, ...]:
        """The statuses of applied, healthy, progressing."""
        obj = self.get(name)
        types = ("ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing")
        return tuple((condition(obj, type_) or {}).get("status", "") for type_ in types)

    def checksums(self) -> set[str]:
        return {(self.get(name).get("status") or {}).get("secretsDataChecksum", "") for name in NAMES}

    def until_settled(self, what: str, *, other_than: set[str] | None = None) -> None:
        def is_so() -> bool:
            is_new = not (other_than and self.checksums() & other_than)
            return is_new and all(self.told(name) == SETTLED for name in NAMES)

        until(is_so, what)

    def deployment(self, name: str) -> Object:
        return self.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")

    def cordon(self, *, is_cordoned: bool) -> None:
        for node in self.api.get("/api/v1/nodes")["items"]:
            patch = {"spec": {"unschedulable": is_cordoned or None}}
            self.api.patch(f"/api/v1/nodes/{node['metadata']['name']}", patch)

    def delete_pods(self) -> None:
        """Those that have a node; DaemonSets give theirs the same one again."""
        for pod in self.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
            owned = any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))
            if owned or "nodeName" not in pod["spec"] or "deletionTimestamp" in pod["metadata"]:
                continue
            try:
                self.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}")
            except NotFound:
                continue

    def series(self, metric: str) -> dict[str, float]:
        """By labels, as they are written."""
        begin = f"{PREFIX}{metric}{{"
        return {
            name.removeprefix(begin): value for name, value in self.agent.metrics().items() if name.startswith(begin)
        }


def until(holds: Callable[[], bool], what: str, *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what}"
        time.sleep(0.1)


def manifests(name: str, image: str, replicas: int) -> list[Object]:
    found = []
    for kind, api_version in KINDS.items():
        labels = {"app": name, "kind": kind}
        # The template of a Job can't be changed.
        pod: Object = {"containers": [{"name": "c", "image": "job:1" if kind == "Job" else image}]}
        spec: Object = {"template": {"metadata": {"labels": labels}, "spec": pod}}
        if kind == "Job":
            pod["restartPolicy"] = "Never"
        else:
            pod["terminationGracePeriodSeconds"] = 0
            spec["selector"] = {"matchLabels": labels}
        if kind in {"Deployment", "StatefulSet"}:
            spec["replicas"] = replicas
        if kind == "StatefulSet":
            spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        meta = {"name": name, "namespace": NAMESPACE}
        found.append({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})
    return found


@pytest.fixture(scope="module")
def drained_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster(nodes=2) as own:
        install_crd(own)
        yield own


@pytest.fixture
def world(drained_cluster: Cluster) -> Iterator[World]:
    with contextlib.suppress(AlreadyExists):
        drained_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    with AgentProcess(CONFIG, kubeconfig=drained_cluster.kubeconfig) as agent:
        agent.wait_until_ready(seconds=60)
        yield World(drained_cluster, agent)


def test_conditions_metrics_and_events_follow_workloads(drained_cluster: Cluster, world: World) -> None:
    world.write(image="i:1", replicas=2)
    for name in NAMES:
        obj = {
            "apiVersion": MANAGED_RESOURCES.api_version,
            "kind": "ManagedResource",
            "metadata": {"name": name},
            "spec": {"secretRefs": [{"name": name}]},
        }
        world.api.create(MANAGED_RESOURCES.path(namespace=NAMESPACE), obj)
    world.until_settled("all to be healthy")
    until(lambda: set(world.series("_objects").values()) == {4.0}, "the metrics to tell of all objects")
    applied = world.series("_last_applied_timestamp_seconds")
    assert len(applied) == len(NAMES)
    assert all(abs(moment - time.time()) < 300 for moment in applied.values())

    world.cordon(is_cordoned=True)

    def until_while_drained(holds: Callable[[], bool], what: str) -> None:
        def without_pods() -> bool:
            # The scheduler may learn late that the nodes take no pods.
            world.delete_pods()
            return holds()

        until(without_pods, what, seconds=240)

    unhealthy = 'namespace="workloads",status="False",type="ResourcesHealthy"}'
    until_while_drained(lambda: all(world.told(name)[1] == "False" for name in NAMES), "all to be unhealthy")
    until_while_drained(
        lambda: min(world.series("_unhealthy_objects").values(), default=0) > 0, "the metrics to tell so"
    )
    until_while_drained(
        lambda: len([name for name in world.series("_condition") if name.endswith(unhealthy)]) == len(NAMES),
        "the metrics to tell of all conditions",
    )
    until_while_drained(lambda: set(NAMES) <= warned(world), "Events about all, since it lasts")

    world.cordon(is_cordoned=False)
    world.until_settled("all to recover")
    until(lambda: max(world.series("_unhealthy_objects").values(), default=1) == 0, "the metrics to tell so")

    for image, replicas in (("i:2", 2), ("i:2", 4)):
        before = world.checksums()
        world.write(image=image, replicas=replicas)
        world.until_settled(f"the change to {image} and {replicas} replicas", other_than=before)
        spec = world.deployment(NAMES[0])["spec"]
        assert (spec["template"]["spec"]["containers"][0]["image"], spec["replicas"]) == (image, replicas)

    audit = drained_cluster.audit()
    try:
        until(lambda: is_quiet(audit, seconds=4), "the agent to ask nothing")
    finally:
        audit.close()


def warned(world: World) -> set[str]:
    """The ManagedResources with an Event that tells that an object is not healthy."""
    events = world.api.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
    return {
        event["involvedObject"]["name"]
        for event in events
        if event["involvedObject"]["kind"] == "ManagedResource"
        and event["type"] == "Warning"
        and event["reason"].endswith("Unhealthy")
    }


def is_quiet(audit: Audit, *, seconds: float) -> bool:
    mark = audit.mark()
    time.sleep(seconds)
    calls = audit.count(since=mark, user_agent="gardener-resource-manager/")
    # The probes of this test make it ask.
    return {call for call in calls if call != ("get", "/healthz")} == set()


def test_series_go_with_the_managed_resource_and_tell_of_ignored_ones(world: World) -> None:
    path = MANAGED_RESOURCES.path(namespace=NAMESPACE)
    obj = {
        "apiVersion": MANAGED_RESOURCES.api_version,
        "kind": "ManagedResource",
        "metadata": {"name": "ignored", "annotations": {"resources.gardener.cloud/ignore": "true"}},
        "spec": {"secretRefs": []},
    }
    world.api.create(path, obj)
    until(lambda: len(world.series("_ignored_since_timestamp_seconds")) == 1, "the metric of the ignored one")
    assert world.agent.metric(f"{PREFIX}s_ignored") == 1
    world.api.delete(f"{path}/ignored")
    until(lambda: not any('name="ignored"' in labels for labels in world.series("_objects")), "its series to go")
