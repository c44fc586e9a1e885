"""The controllers of Nodes at a real API server; Nodes belong to a whole cluster, so each test process has its own."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_clusters import at_work, cluster_of, context_of
from prometheus_client import REGISTRY

from agent.context import Context, ControlLoop
from agent.node.agent_reconciliation_delay.controller import AgentReconciliationDelayLoop
from agent.node.critical_components.controller import CriticalComponentsLoop
from agent.node.high_availability_config.controller import HighAvailabilityConfigLoop
from config.schema_controllers import Controllers, NodeAgentReconciliationDelay, NodeCriticalComponents
from devcluster.cluster import Cluster
from devcluster.faults import Ending, EndWatch, Rule
from devcluster.proxy import FaultProxy
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.errors import NotFound
from kube.objects import Object, annotations
from kube.watch import Timings

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/kube-system/pods"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
EVENTS = "/api/v1/namespaces/default/events"
CRITICAL = "node.gardener.cloud/critical-component"
NOT_READY = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
KEPT = {"key": "example.com/keep", "value": "1", "effect": "NoSchedule"}
DELAY = "node-agent.gardener.cloud/reconciliation-delay"
CONSIDER = "high-availability-config.resources.gardener.cloud/consider"
SKIP = "high-availability-config.resources.gardener.cloud/skip"
NEVER = 3600.0
PATIENCE = 60.0


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        _wait_for_service_account(own)
        yield own


def _wait_for_service_account(cluster: Cluster) -> None:
    """Without it pods are refused; that of another namespace may be made before it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            cluster.api.get("/api/v1/namespaces/kube-system/serviceaccounts/default")
            return
        except NotFound:
            assert time.monotonic() < deadline
            time.sleep(0.05)


class World:
    """Nodes and what runs on them; all of it goes after the test."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.id = uuid.uuid4().hex[:8]
        self._made: list[str] = []

    def make(self, collection: str, obj: Object) -> str:
        self.api.create(collection, obj)
        name = str(obj["metadata"]["name"])
        self._made.append(f"{collection}/{name}")
        return name

    def node(self, name: str = "n", *taints: Object, played: bool = False, **labels: str) -> str:
        meta = {"name": f"{name}-{self.id}", "labels": {"test": self.id, **labels}}
        meta |= {"annotations": {"kwok.x-k8s.io/node": "fake"}} if played else {}
        # Who plays the kubelet needs an address to give to pods.
        status = {"addresses": [{"type": "InternalIP", "address": "10.65.0.1"}]}
        return self.make(NODES, {"metadata": meta, "spec": {"taints": list(taints)}, "status": status})

    def taints(self, node: str) -> list[str]:
        """Keys, without those that belong to the cluster itself."""
        taints = self.api.get(f"{NODES}/{node}")["spec"].get("taints") or []
        return [taint["key"] for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]

    def pod(self, node: str, name: str, **annotated: str) -> str:
        meta = {"name": f"{name}-{self.id}", "labels": {CRITICAL: "true"}, "annotations": annotated}
        spec = {
            "nodeName": node,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i"}],
        }
        return self.make(PODS, {"metadata": meta, "spec": spec})

    def ready(self, pod: str, status: str = "True") -> None:
        conditions = [{"type": "Ready", "status": status}]
        self.api.patch(f"{PODS}/{pod}/status", {"status": {"phase": "Running", "conditions": conditions}})

    def daemon_set(self, **pod_spec: Any) -> str:
        labels = {"app": self.id, CRITICAL: "true"}
        spec = {
            "nodeSelector": {"test": self.id},
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i"}],
            **pod_spec,
        }
        meta = {"name": f"d-{self.id}", "labels": {CRITICAL: "true"}}
        template = {"metadata": {"labels": labels}, "spec": spec}
        return self.make(
            DAEMON_SETS,
            {"metadata": meta, "spec": {"selector": {"matchLabels": {"app": self.id}}, "template": template}},
        )

    def drivers(self, node: str, *names: str) -> None:
        self.make(
            CSI_NODES, {"metadata": {"name": node}, "spec": {"drivers": [{"name": n, "nodeID": n} for n in names]}}
        )

    def events(self, node: str) -> list[Object]:
        found = self.api.get(f"{EVENTS}?fieldSelector=involvedObject.name={node}")["items"]
        return [event for event in found if event["source"].get("component") == "node-critical-components-controller"]

    def reasons(self, node: str) -> set[str]:
        return {event["reason"] for event in self.events(node)}

    def delays(self) -> dict[str, str | None]:
        nodes = self.api.get(NODES)["items"]
        return {node["metadata"]["name"]: annotations(node).get(DELAY) for node in nodes}

    async def clean_up(self) -> None:
        for path in self._made:
            with contextlib.suppress(NotFound):
                self.api.request("DELETE", path, {"gracePeriodSeconds": 0})
        await until(lambda: not self.api.get(NODES)["items"])


@pytest.fixture
async def world(own_cluster: Cluster) -> AsyncIterator[World]:
    made = World(own_cluster)
    yield made
    await made.clean_up()


async def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@asynccontextmanager
async def running(
    cluster: Cluster,
    make: Callable[[Context], ControlLoop],
    *,
    kubeconfig: Path | None = None,
    namespaces: Sequence[str] = (),
    timings: Timings | None = None,
    **controllers: Any,
) -> AsyncIterator[str]:
    """A control loop at work; yields the user agent of its calls."""
    async with Transport(load_kubeconfig(kubeconfig or cluster.kubeconfig)) as transport:
        user_agent = f"node-controllers-{uuid.uuid4()}"
        client = Client(transport, user_agent=user_agent)
        context = context_of(cluster_of(client, *namespaces, timings=timings), Controllers(**controllers))
        async with at_work(context, make(context)):
            yield user_agent


def critical(*, backoff: float = NEVER) -> dict[str, Any]:
    return {"node_critical_components": NodeCriticalComponents(enabled=True, backoff=backoff)}


def delayed(least: float = 0.0, most: float = 300.0) -> dict[str, Any]:
    settings = NodeAgentReconciliationDelay(enabled=True, min_delay=least, max_delay=most)
    return {"node_agent_reconciliation_delay": settings}


def results(controller: str, result: str) -> float:
    series = {"controller": controller, "result": result}
    return REGISTRY.get_sample_value("controller_runtime_reconcile_total", series) or 0.0


# --- critical components


async def test_the_taint_goes_when_the_last_component_is_ready(world: World) -> None:
    """Watches tell when that is: the next regular look would be in an hour."""
    wait = {"node.gardener.cloud/wait-for-csi-node-a": "disk.example.org"}
    node = world.node("n", KEPT, NOT_READY)
    first, second = world.pod(node, "a"), world.pod(node, "b", **wait)
    async with running(world.cluster, CriticalComponentsLoop, **critical()):
        await until(lambda: world.reasons(node) == {"UnreadyNodeCriticalPods"})
        assert [event["message"] for event in world.events(node)] == [
            f"Unready node-critical Pods found on Node: kube-system/{first}, kube-system/{second}"
        ]
        world.ready(first)
        world.ready(second)
        assert NOT_READY["key"] in world.taints(node)
        world.drivers(node, "disk.example.org")
        await until(lambda: world.taints(node) == [KEPT["key"]])
        await until(lambda: "NodeCriticalComponentsReady" in world.reasons(node))
    last = next(event for event in world.events(node) if event["reason"] == "NodeCriticalComponentsReady")
    assert last["message"].startswith("All node-critical components got ready, removing taint after ")
    assert (last["type"], last["involvedObject"]["kind"]) == ("Normal", "Node")


async def test_a_node_without_components_is_free_at_once(world: World) -> None:
    early = world.node("early", NOT_READY)
    async with running(world.cluster, CriticalComponentsLoop, **critical()):
        late = world.node("late", {**NOT_READY, "value": "x"}, KEPT, {**NOT_READY, "effect": "PreferNoSchedule"})
        await until(lambda: world.taints(early) == [])
        await until(lambda: world.taints(late) == [KEPT["key"]])
        world.api.patch(f"{NODES}/{late}", {"spec": {"taints": [NOT_READY, KEPT]}})
        await until(lambda: world.taints(late) == [KEPT["key"]])


async def test_the_pods_of_daemon_sets_are_waited_for(world: World) -> None:
    """The DaemonSet controller, the scheduler and a played kubelet do their part."""
    async with running(world.cluster, CriticalComponentsLoop, **critical()):
        world.daemon_set()
        node = world.node("n", NOT_READY, played=True)
        await until(lambda: world.taints(node) == [])


async def test_a_daemon_set_that_goes_is_waited_for_no_longer(world: World) -> None:
    name = world.daemon_set(schedulerName="nobody")
    node = world.node("n", NOT_READY)
    async with running(world.cluster, CriticalComponentsLoop, namespaces=["kube-system", "default"], **critical()):
        await until(lambda: world.reasons(node) == {"UnscheduledNodeCriticalDaemonSets"})
        assert world.taints(node) == [NOT_READY["key"]]
        world.api.delete(f"{DAEMON_SETS}/{name}")
        await until(lambda: world.taints(node) == [])


async def test_the_same_reason_is_told_once(world: World) -> None:
    before = results("node-critical-components", "requeue_after")
    node = world.node("n", NOT_READY)
    pod = world.pod(node, "a")
    audit = world.cluster.audit()
    try:
        async with running(world.cluster, CriticalComponentsLoop, **critical(backoff=0.1)) as user_agent:
            await until(lambda: results("node-critical-components", "requeue_after") > before + 5)
            await until(lambda: world.events(node))
            # The event can be seen before it is in the audit log.
            await until(lambda: audit.calls(user_agent=user_agent, verbs=["create"]))
            assert [event["count"] for event in world.events(node)] == [1]
            mark = audit.mark()
            looks = results("node-critical-components", "requeue_after")
            await until(lambda: results("node-critical-components", "requeue_after") > looks + 5)
            assert audit.calls(since=mark, user_agent=user_agent) == []
            world.ready(pod)
            await until(lambda: world.taints(node) == [])
            await until(lambda: "NodeCriticalComponentsReady" in world.reasons(node))
    finally:
        audit.close()
    assert world.reasons(node) == {"UnreadyNodeCriticalPods", "NodeCriticalComponentsReady"}


async def test_what_others_write_to_the_node_is_not_undone(world: World, tmp_path: Path) -> None:
    """It knows an old state of the Node: its patch is refused until the watch tells the new one."""
    node = world.node("n", NOT_READY)
    pod = world.pod(node, "a")
    upstream = world.cluster
    async with FaultProxy(upstream=upstream.url, upstream_ca=upstream.ca, authority=upstream.authority) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        proxy.write_kubeconfig(kubeconfig, token=upstream.token)
        proxy.rules.add(Rule(fault=EndWatch(how=Ending.SILENT), path="/nodes$"))
        timings = Timings(idle_timeout=1.0)
        async with running(upstream, CriticalComponentsLoop, kubeconfig=kubeconfig, timings=timings, **critical()):
            world.api.patch(f"{NODES}/{node}", {"spec": {"taints": [NOT_READY, KEPT]}})
            world.ready(pod)
            await until(lambda: any(e.status == 409 and e.request.path == f"{NODES}/{node}" for e in proxy.log))
            assert world.taints(node) == [NOT_READY["key"], KEPT["key"]]
            proxy.rules.clear()
            await until(lambda: world.taints(node) == [KEPT["key"]])


# --- delays of node agents


async def test_delays_follow_the_nodes(world: World) -> None:
    one, two, ten = world.node("n-1"), world.node("n-2"), world.node("n-10")
    async with running(world.cluster, AgentReconciliationDelayLoop, **delayed()) as user_agent:
        await until(lambda: world.delays() == {one: "0s", ten: "1m40s", two: "3m20s"})
        world.api.patch(f"{NODES}/{two}", {"metadata": {"annotations": {DELAY: "1h"}}})
        await until(lambda: world.delays()[two] == "3m20s")
        world.api.patch(f"{NODES}/{ten}", {"metadata": {"annotations": {DELAY: None}}})
        await until(lambda: world.delays()[ten] == "1m40s")
        world.api.delete(f"{NODES}/{two}")
        await until(lambda: world.delays() == {one: "0s", ten: "2m30s"})
    audit = world.cluster.audit()
    try:
        before = results("node-agent-reconciliation-delay", "success")
        async with running(world.cluster, AgentReconciliationDelayLoop, **delayed()) as user_agent:
            await until(lambda: results("node-agent-reconciliation-delay", "success") > before)
        assert {call.verb for call in audit.calls(user_agent=user_agent)} <= {"list"}
    finally:
        audit.close()


async def test_nodes_that_are_updated_one_by_one_have_no_delay(world: World) -> None:
    label = "worker.gardener.cloud/gardener-node-agent-secret-name"
    meta = {
        "name": f"osc-{world.id}",
        "labels": {"gardener.cloud/role": "operating-system-config"},
        "annotations": {"reconciliation.osc.node-agent.gardener.cloud/serial": "true"},
    }
    serial = world.make(SECRETS, {"metadata": meta})
    other = world.make(SECRETS, {"metadata": {**meta, "name": f"other-{world.id}", "annotations": {}}})
    nodes = world.node("a"), world.node("b", **{label: serial}), world.node("c", **{label: other})
    async with running(world.cluster, AgentReconciliationDelayLoop, **delayed()):
        await until(lambda: world.delays() == {nodes[0]: "0s", nodes[1]: None, nodes[2]: "2m30s"})


async def test_delays_are_written_though_kubelets_write_as_well(world: World) -> None:
    names = [world.node(f"n{i}") for i in range(5)]

    async def kubelets() -> None:
        beat = 0
        while True:
            beat += 1
            for name in names:
                patch = {"metadata": {"annotations": {"example.com/beat": str(beat)}}}
                await asyncio.to_thread(world.api.patch, f"{NODES}/{name}", patch)

    beating = asyncio.create_task(kubelets())
    try:
        async with running(world.cluster, AgentReconciliationDelayLoop, **delayed(0, 5)):
            await until(lambda: list(world.delays().values()) == ["0s", "1s", "2s", "3s", "4s"])
    finally:
        beating.cancel()
        await asyncio.wait([beating])


# --- high availability


def workload(name: str, constraint: str, **labels: str) -> Object:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": constraint,
        "labelSelector": {"matchLabels": {"app": name}},
    }
    spec = {"containers": [{"name": "c", "image": "i"}], "topologySpreadConstraints": [spread]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 0, "selector": selector, "serviceName": name, "template": template},
    }


async def test_workloads_are_written_again_when_one_node_becomes_several(world: World) -> None:
    considered, ignored = f"ha-{world.id}", f"no-{world.id}"
    world.make("/api/v1/namespaces", {"metadata": {"name": considered, "labels": {CONSIDER: "true"}}})
    world.make("/api/v1/namespaces", {"metadata": {"name": ignored}})
    for namespace in (considered, ignored):
        apps = f"/apis/apps/v1/namespaces/{namespace}"
        for obj in (
            workload("strict", "DoNotSchedule"),
            workload("loose", "ScheduleAnyway"),
            workload("skipped-loose", "ScheduleAnyway", **{SKIP: "true"}),
            workload("skipped-strict", "DoNotSchedule", **{SKIP: "true"}),
        ):
            world.api.create(f"{apps}/deployments", {**obj, "spec": _without_service(obj)})
            world.api.create(f"{apps}/statefulsets", obj)
    world.node("first")
    audit = world.cluster.audit()
    try:
        async with running(world.cluster, HighAvailabilityConfigLoop) as user_agent:

            def touched() -> list[str]:
                calls = audit.calls(user_agent=user_agent, verbs=["patch"])
                return sorted(f"{call.namespace}/{call.resource}/{call.name}" for call in calls)

            strict = [f"{considered}/deployments/strict", f"{considered}/statefulsets/strict"]
            loose = [f"{considered}/deployments/loose", f"{considered}/statefulsets/loose"]
            await until(lambda: touched() == strict)
            world.node("second")
            await until(lambda: touched() == sorted(strict + loose))
            mark = audit.mark()
            before = results("node-high-availability-config", "success")
            world.node("third")
            await until(lambda: results("node-high-availability-config", "success") > before)
            assert audit.calls(since=mark, user_agent=user_agent) == []
    finally:
        audit.close()


def _without_service(obj: Object) -> Object:
    return {name: value for name, value in obj["spec"].items() if name != "serviceName"}
