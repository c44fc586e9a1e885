"""Conditions, metrics and Events follow workloads that become healthy, degrade and recover; in steady state no call is made.

The cluster is this file's own, since its nodes are drained.
"""

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import bundle, managed_resource
from kit.processes.agent import AgentProcess, sole_configuration
from kit.world import Place
from kube.errors import AlreadyExists
from kube.objects import Object

NAMESPACE = "workloads"
NAMES = ("mr-0", "mr-1", "mr-2")
KINDS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"}
SETTLED = ("True", "True", "False")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PREFIX = "resource_manager_managed_resource"
CONFIG = sole_configuration(controllers={"managedResource": {"syncPeriod": "15s"}, "health": {"syncPeriod": "15s"}})


class WorkloadPlace(Place):
    def __init__(self, cluster: Cluster, agent: AgentProcess) -> None:
        super().__init__(cluster, NAMESPACE)
        self.agent = agent

    def write(self, *, image: str, replicas: int) -> None:
        """All Secrets."""
        for name in NAMES:
            self.put(bundle(name, *manifests(name, image, replicas)))

    def checksums(self) -> set[str]:
        return {
            (self.get("ManagedResource", name).get("status") or {}).get("secretsDataChecksum", "") for name in NAMES
        }

    def until_settled(self, what: str, *, other_than: set[str] | None = None) -> None:
        def is_so() -> bool:
            is_new = not (other_than and self.checksums() & other_than)
            return is_new and all(self.statuses(name) == SETTLED for name in NAMES)

        eventually(is_so, what)

    def cordon(self, *, is_cordoned: bool) -> None:
        for node in self.list("Node"):
            self.patch("Node", node["metadata"]["name"], {"spec": {"unschedulable": is_cordoned or None}})

    def delete_pods(self) -> None:
        """Those that have a node; DaemonSets give theirs the same one again."""
        for pod in self.list("Pod"):
            owned = any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))
            if not owned and "nodeName" in pod["spec"] and "deletionTimestamp" not in pod["metadata"]:
                self.remove("Pod", pod["metadata"]["name"])

    def series(self, metric: str) -> dict[str, float]:
        """By labels, as they are written."""
        begin = f"{PREFIX}{metric}{{"
        return {
            name.removeprefix(begin): value for name, value in self.agent.metrics().items() if name.startswith(begin)
        }


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
def world(drained_cluster: Cluster) -> Iterator[WorkloadPlace]:
    with contextlib.suppress(AlreadyExists):
        drained_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    with AgentProcess(CONFIG, kubeconfig=drained_cluster.kubeconfig) as agent:
        agent.wait_until_ready()
        yield WorkloadPlace(drained_cluster, agent)


def test_conditions_metrics_and_events_follow_workloads(drained_cluster: Cluster, world: WorkloadPlace) -> None:
    world.write(image="i:1", replicas=2)
    for name in NAMES:
        world.create(managed_resource(name))
    world.until_settled("all to be healthy")
    eventually(lambda: set(world.series("_objects").values()) == {4.0}, "the metrics to count all objects")
    applied = world.series("_last_applied_timestamp_seconds")
    assert len(applied) == len(NAMES)
    assert all(abs(moment - time.time()) < 300 for moment in applied.values())

    world.cordon(is_cordoned=True)

    def until_while_drained(holds: Callable[[], bool], what: str) -> None:
        def without_pods() -> bool:
            # The scheduler may learn late that the nodes take no pods.
            world.delete_pods()
            return holds()

        eventually(without_pods, what, seconds=240)

    unhealthy = 'namespace="workloads",status="False",type="ResourcesHealthy"}'
    until_while_drained(lambda: all(world.statuses(name)[1] == "False" for name in NAMES), "all to be unhealthy")
    until_while_drained(
        lambda: min(world.series("_unhealthy_objects").values(), default=0) > 0, "the metrics to show it"
    )
    until_while_drained(
        lambda: len([name for name in world.series("_condition") if name.endswith(unhealthy)]) == len(NAMES),
        "the metrics to show all conditions",
    )
    until_while_drained(lambda: set(NAMES) <= warned(world), "Events about all, since it lasts")

    world.cordon(is_cordoned=False)
    world.until_settled("all to recover")
    eventually(lambda: max(world.series("_unhealthy_objects").values(), default=1) == 0, "the metrics to show it")

    for image, replicas in (("i:2", 2), ("i:2", 4)):
        before = world.checksums()
        world.write(image=image, replicas=replicas)
        world.until_settled(f"the change to {image} and {replicas} replicas", other_than=before)
        spec = world.get("Deployment", NAMES[0])["spec"]
        assert (spec["template"]["spec"]["containers"][0]["image"], spec["replicas"]) == (image, replicas)

    with contextlib.closing(drained_cluster.audit()) as audit:
        eventually(lambda: is_quiet(audit, seconds=4), "the agent to ask nothing")


def warned(world: WorkloadPlace) -> set[str]:
    """The ManagedResources with an Event that reports that an object is not healthy."""
    return {
        event["involvedObject"]["name"]
        for event in world.list("Event")
        if event["involvedObject"]["kind"] == "ManagedResource"
        and event["type"] == "Warning"
        and event["reason"].endswith("Unhealthy")
    }


def is_quiet(audit: Audit, *, seconds: float) -> bool:
    mark = audit.mark()
    time.sleep(seconds)
    return audit.count(since=mark, user_agent="gardener-resource-manager/") == {}


def test_series_go_with_the_managed_resource_and_name_ignored_ones(world: WorkloadPlace) -> None:
    ignored = {"resources.gardener.cloud/ignore": "true"}
    world.create(managed_resource("ignored", annotations=ignored, spec={"secretRefs": []}))
    eventually(lambda: len(world.series("_ignored_since_timestamp_seconds")) == 1, "the metric of the ignored one")
    assert world.agent.metric(f"{PREFIX}s_ignored") == 1
    world.delete("ManagedResource", "ignored")
    eventually(lambda: not any('name="ignored"' in labels for labels in world.series("_objects")), "its series to go")
