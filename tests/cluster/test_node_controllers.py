"""The controllers of Nodes at a real API server; Nodes belong to a whole cluster, so each test process has its own."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.resource_manager.context import Context
from agent.resource_manager.node import agent_reconciliation_delay as reconciliation_delay
from agent.resource_manager.node import high_availability_config
from agent.resource_manager.node.critical_components import controller as critical_components
from config.resource_manager.controllers import Controllers, NodeAgentReconciliationDelay, NodeCriticalComponents
from devcluster.cluster import Cluster
from devcluster.testing.faults import Delay, EndWatch, Rule, WatchEnd
from kit.controllers import counted, run_controller
from kit.eventually import eventually, soon
from kit.objects import obj, pod, resource_of, secret, workload
from kit.proxied import proxied
from kit.world import Place, connected
from kube.errors import NotFound
from kube.objects import Object, annotations, key
from kube.resources import CSI_NODES, DAEMON_SETS, DEPLOYMENTS, EVENTS, NODES, SERVICE_ACCOUNTS, STATEFUL_SETS, Resource
from kube.runtime.loop import ControlLoop
from kube.runtime.watch import Timings

CRITICAL = "node.gardener.cloud/critical-component"
NOT_READY = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
KEPT = {"key": "example.com/keep", "value": "1", "effect": "NoSchedule"}
DELAY = "node-agent.gardener.cloud/reconciliation-delay"
CONSIDER = "high-availability-config.resources.gardener.cloud/consider"
SKIP = "high-availability-config.resources.gardener.cloud/skip"
NEVER = 3600.0
TOLERANT: Object = {"tolerations": [{"operator": "Exists"}], "automountServiceAccountToken": False}
"""Pods that run everywhere."""


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    with Cluster() as own:
        # Without it pods are refused; that of another namespace may be made before it.
        path = SERVICE_ACCOUNTS.path(namespace="kube-system", name="default")
        eventually(lambda: own.api.get(path), path, passing=(NotFound,))
        yield own


class NodePlace(Place):
    """Nodes and what runs on them; all of it goes after the test."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, "kube-system")
        self.id = uuid.uuid4().hex[:8]
        self._made: list[Object] = []

    def make(self, manifest: Object) -> str:
        self._made.append(self.create(manifest))
        return str(manifest["metadata"]["name"])

    def node(
        self, name: str = "n", *taints: Object, played: bool = False, labels: Mapping[str, str] | None = None
    ) -> str:
        # Who plays the kubelet needs an address to give to pods.
        status = {"addresses": [{"type": "InternalIP", "address": "10.65.0.1"}]}
        meta = {
            "labels": {"test": self.id, **(labels or {})},
            "annotations": {"kwok.x-k8s.io/node": "fake"} if played else {},
        }
        return self.make(obj(NODES, f"{name}-{self.id}", spec={"taints": list(taints)}, status=status, **meta))

    def taints(self, node: str) -> list[str]:
        """Keys, without those that belong to the cluster itself."""
        taints = self.get("Node", node)["spec"].get("taints") or []
        return [taint["key"] for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]

    def pod(self, node: str, name: str, **annotated: str) -> str:
        marks = {CRITICAL: "true"}
        return self.make(pod(f"{name}-{self.id}", labels=marks, annotations=annotated, nodeName=node, **TOLERANT))

    def ready(self, pod: str, status: str = "True") -> None:
        conditions = [{"type": "Ready", "status": status}]
        self.patch("Pod", pod, {"status": {"phase": "Running", "conditions": conditions}}, subresource="status")

    def daemon_set(self, **pod_spec: Any) -> str:
        spec = {"nodeSelector": {"test": self.id}, "terminationGracePeriodSeconds": 0, **TOLERANT, **pod_spec}
        critical = {CRITICAL: "true"}
        return self.make(workload(DAEMON_SETS, f"d-{self.id}", labels=critical, pod_labels=critical, pod=spec))

    def drivers(self, node: str, *names: str) -> None:
        self.make(obj(CSI_NODES, node, spec={"drivers": [{"name": n, "nodeID": n} for n in names]}))

    def events(self, node: str) -> list[Object]:
        found = self.api.get(f"{EVENTS.path(namespace='default')}?fieldSelector=involvedObject.name={node}")["items"]
        return [event for event in found if event["source"].get("component") == "node-critical-components-controller"]

    def reasons(self, node: str) -> set[str]:
        return {event["reason"] for event in self.events(node)}

    def delays(self) -> dict[str, str | None]:
        return {node["metadata"]["name"]: annotations(node).get(DELAY) for node in self.list("Node")}

    async def clean_up(self) -> None:
        for made in self._made:
            path = resource_of(made["kind"]).path(namespace=key(made).namespace, name=key(made).name)
            with contextlib.suppress(NotFound):
                self.api.request("DELETE", path, {"gracePeriodSeconds": 0})
        await soon(lambda: not self.list("Node"))


@pytest.fixture
async def world(own_cluster: Cluster) -> AsyncIterator[NodePlace]:
    made = NodePlace(own_cluster)
    yield made
    await made.clean_up()


@asynccontextmanager
async def running(
    cluster: Cluster,
    declare: Callable[[Context], ControlLoop],
    *,
    kubeconfig: Path | None = None,
    namespaces: Sequence[str] = (),
    timings: Timings | None = None,
    **controllers: Any,
) -> AsyncIterator[str]:
    """A control loop at work; yields the user agent of its calls."""
    user_agent = f"node-controllers-{uuid.uuid4()}"
    async with (
        connected(kubeconfig or cluster, user_agent) as client,
        run_controller(declare, client, *namespaces, controllers=Controllers(**controllers), timings=timings),
    ):
        yield user_agent


def critical(*, backoff: float = NEVER) -> dict[str, Any]:
    return {"node_critical_components": NodeCriticalComponents(enabled=True, backoff=backoff)}


def delayed(least: float = 0.0, most: float = 300.0) -> dict[str, Any]:
    settings = NodeAgentReconciliationDelay(enabled=True, min_delay=least, max_delay=most)
    return {"node_agent_reconciliation_delay": settings}


def results(controller: str, result: str) -> float:
    return counted("controller_runtime_reconcile_total", controller=controller, result=result)


# --- critical components


async def test_the_taint_goes_when_the_last_component_is_ready(world: NodePlace) -> None:
    """Watches show when that is: the next regular look would be in an hour."""
    wait = {"node.gardener.cloud/wait-for-csi-node-a": "disk.example.org"}
    node = world.node("n", KEPT, NOT_READY)
    first, second = world.pod(node, "a"), world.pod(node, "b", **wait)
    async with running(world.cluster, critical_components.declare, **critical()):
        await soon(lambda: world.reasons(node) == {"UnreadyNodeCriticalPods"})
        assert [event["message"] for event in world.events(node)] == [
            f"Unready node-critical Pods found on Node: kube-system/{first}, kube-system/{second}"
        ]
        world.ready(first)
        world.ready(second)
        assert NOT_READY["key"] in world.taints(node)
        world.drivers(node, "disk.example.org")
        await soon(lambda: world.taints(node) == [KEPT["key"]])
        await soon(lambda: "NodeCriticalComponentsReady" in world.reasons(node))
    last = next(event for event in world.events(node) if event["reason"] == "NodeCriticalComponentsReady")
    assert last["message"].startswith("All node-critical components got ready, removing taint after ")
    assert (last["type"], last["involvedObject"]["kind"]) == ("Normal", "Node")


async def test_a_node_without_components_is_free_at_once(world: NodePlace) -> None:
    early = world.node("early", NOT_READY)
    async with running(world.cluster, critical_components.declare, **critical()):
        late = world.node("late", {**NOT_READY, "value": "x"}, KEPT, {**NOT_READY, "effect": "PreferNoSchedule"})
        await soon(lambda: world.taints(early) == [])
        await soon(lambda: world.taints(late) == [KEPT["key"]])
        world.patch("Node", late, {"spec": {"taints": [NOT_READY, KEPT]}})
        await soon(lambda: world.taints(late) == [KEPT["key"]])


async def test_the_pods_of_daemon_sets_are_waited_for(world: NodePlace) -> None:
    """The DaemonSet controller, the scheduler and a simulated kubelet do their part."""
    async with running(world.cluster, critical_components.declare, **critical()):
        world.daemon_set()
        node = world.node("n", NOT_READY, played=True)
        await soon(lambda: world.taints(node) == [])


async def test_a_daemon_set_that_goes_is_waited_for_no_longer(world: NodePlace) -> None:
    name = world.daemon_set(schedulerName="none")
    node = world.node("n", NOT_READY)
    async with running(world.cluster, critical_components.declare, namespaces=["kube-system", "default"], **critical()):
        await soon(lambda: world.reasons(node) == {"UnscheduledNodeCriticalDaemonSets"})
        assert world.taints(node) == [NOT_READY["key"]]
        world.delete("DaemonSet", name)
        await soon(lambda: world.taints(node) == [])


async def test_the_same_reason_is_reported_once(world: NodePlace) -> None:
    before = results("node-critical-components", "requeue_after")
    node = world.node("n", NOT_READY)
    pod = world.pod(node, "a")
    with contextlib.closing(world.cluster.audit()) as audit:
        async with running(world.cluster, critical_components.declare, **critical(backoff=0.1)) as user_agent:
            await soon(lambda: results("node-critical-components", "requeue_after") > before + 5)
            await soon(lambda: world.events(node))
            # The event can be seen before it is in the audit log.
            await soon(lambda: audit.calls(user_agent=user_agent, verbs=["create"]))
            assert [event["count"] for event in world.events(node)] == [1]
            mark = audit.mark()
            looks = results("node-critical-components", "requeue_after")
            await soon(lambda: results("node-critical-components", "requeue_after") > looks + 5)
            assert audit.calls(since=mark, user_agent=user_agent) == []
            world.ready(pod)
            await soon(lambda: world.taints(node) == [])
            await soon(lambda: "NodeCriticalComponentsReady" in world.reasons(node))
    assert world.reasons(node) == {"UnreadyNodeCriticalPods", "NodeCriticalComponentsReady"}


async def test_what_others_write_to_the_node_is_not_undone(world: NodePlace, tmp_path: Path) -> None:
    """It knows an old state of the Node: its patch is refused until the watch brings the new one."""
    node = world.node("n", NOT_READY)
    pod = world.pod(node, "a")
    async with proxied(world.cluster, tmp_path) as (proxy, _):
        proxy.rules.add(Rule(fault=EndWatch(how=WatchEnd.SILENT), path="/nodes$"))
        timings = Timings(idle_timeout=1.0)
        kubeconfig = tmp_path / "kubeconfig"
        async with running(
            world.cluster, critical_components.declare, kubeconfig=kubeconfig, timings=timings, **critical()
        ):
            world.patch("Node", node, {"spec": {"taints": [NOT_READY, KEPT]}})
            world.ready(pod)
            await soon(lambda: any(e.status == 409 and e.request.path == world.path("Node", node) for e in proxy.log))
            assert world.taints(node) == [NOT_READY["key"], KEPT["key"]]
            proxy.rules.clear()
            await soon(lambda: world.taints(node) == [KEPT["key"]])


# --- delays of node agents


async def test_delays_follow_the_nodes(world: NodePlace) -> None:
    one, two, ten = world.node("n-1"), world.node("n-2"), world.node("n-10")
    async with running(world.cluster, reconciliation_delay.declare, **delayed()) as user_agent:
        await soon(lambda: world.delays() == {one: "0s", ten: "1m40s", two: "3m20s"})
        world.patch("Node", two, {"metadata": {"annotations": {DELAY: "1h"}}})
        await soon(lambda: world.delays()[two] == "3m20s")
        world.patch("Node", ten, {"metadata": {"annotations": {DELAY: None}}})
        await soon(lambda: world.delays()[ten] == "1m40s")
        world.delete("Node", two)
        await soon(lambda: world.delays() == {one: "0s", ten: "2m30s"})
    with contextlib.closing(world.cluster.audit()) as audit:
        before = results("node-agent-reconciliation-delay", "success")
        async with running(world.cluster, reconciliation_delay.declare, **delayed()) as user_agent:
            await soon(lambda: results("node-agent-reconciliation-delay", "success") > before)
        assert {call.verb for call in audit.calls(user_agent=user_agent)} <= {"list"}


async def test_nodes_that_are_updated_one_by_one_have_no_delay(world: NodePlace) -> None:
    label = "worker.gardener.cloud/gardener-node-agent-secret-name"
    of_config = {"gardener.cloud/role": "operating-system-config"}
    one_by_one = {"reconciliation.osc.node-agent.gardener.cloud/serial": "true"}
    serial = world.make(secret(f"osc-{world.id}", labels=of_config, annotations=one_by_one))
    other = world.make(secret(f"other-{world.id}", labels=of_config))
    nodes = world.node("a"), world.node("b", labels={label: serial}), world.node("c", labels={label: other})
    async with running(world.cluster, reconciliation_delay.declare, **delayed()):
        await soon(lambda: world.delays() == {nodes[0]: "0s", nodes[1]: None, nodes[2]: "2m30s"})


async def test_delays_are_written_though_kubelets_write_as_well(world: NodePlace) -> None:
    names = [world.node(f"n{i}") for i in range(5)]

    async def kubelets() -> None:
        beat = 0
        while True:
            beat += 1
            for name in names:
                patch = {"metadata": {"annotations": {"example.com/beat": str(beat)}}}
                await asyncio.to_thread(world.patch, "Node", name, patch)

    beating = asyncio.create_task(kubelets())
    try:
        async with running(world.cluster, reconciliation_delay.declare, **delayed(0, 5)):
            await soon(lambda: list(world.delays().values()) == ["0s", "1s", "2s", "3s", "4s"])
    finally:
        beating.cancel()
        await asyncio.wait([beating])


# --- high availability


def spread(resource: Resource, namespace: str, name: str, constraint: str, **labels: str) -> Object:
    spreading = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": constraint}
    pods = {"topologySpreadConstraints": [{**spreading, "labelSelector": {"matchLabels": {"app": name}}}]}
    return workload(resource, name, namespace=namespace, labels=labels, pod=pods, replicas=0)


async def test_workloads_are_written_again_when_one_node_becomes_several(world: NodePlace) -> None:
    considered, ignored = f"ha-{world.id}", f"no-{world.id}"
    world.make(obj("Namespace", considered, labels={CONSIDER: "true"}))
    world.make(obj("Namespace", ignored))
    for namespace in (considered, ignored):
        for resource in (DEPLOYMENTS, STATEFUL_SETS):
            for name, constraint in (("strict", "DoNotSchedule"), ("loose", "ScheduleAnyway")):
                world.create(spread(resource, namespace, name, constraint))
                world.create(spread(resource, namespace, f"skipped-{name}", constraint, **{SKIP: "true"}))
    world.node("first")
    with contextlib.closing(world.cluster.audit()) as audit:
        async with running(world.cluster, high_availability_config.declare) as user_agent:

            def touched() -> list[str]:
                calls = audit.calls(user_agent=user_agent, verbs=["patch"])
                return sorted(f"{call.namespace}/{call.resource}/{call.name}" for call in calls)

            strict = [f"{considered}/deployments/strict", f"{considered}/statefulsets/strict"]
            loose = [f"{considered}/deployments/loose", f"{considered}/statefulsets/loose"]
            await soon(lambda: touched() == strict)
            second = world.node("second")
            await soon(lambda: touched() == sorted(strict + loose))
            mark = audit.mark()
            world.remove("Node", world.node("third"))
            world.remove("Node", second)
            await soon(lambda: touched() == sorted(strict * 2 + loose))
            lists = audit.calls(since=mark, user_agent=user_agent, verbs=["list"])
            assert [call.resource for call in lists].count("namespaces") == 1


@pytest.mark.parametrize(
    ("nodes", "outdated"), [(1, "DoNotSchedule"), (2, "ScheduleAnyway")], ids=["one, two, one", "two, one, two"]
)
@pytest.mark.parametrize("list_seconds", [0.0, 1.5], ids=["between passes", "during a pass"])
async def test_another_number_of_nodes_counts_even_for_a_moment(
    world: NodePlace, tmp_path: Path, nodes: int, outdated: str, list_seconds: float
) -> None:
    """What was written at that moment is as for the other number."""
    considered = f"ha-{world.id}"
    world.make(obj("Namespace", considered, labels={CONSIDER: "true"}))
    world.create(spread(DEPLOYMENTS, considered, "a", outdated))
    for number in range(nodes):
        world.node(f"n{number}")
    async with proxied(world.cluster, tmp_path) as (proxy, _):
        kubeconfig = tmp_path / "kubeconfig"
        proxy.rules.add(Rule(fault=Delay(seconds=list_seconds), path="/namespaces$", times=1))
        async with running(world.cluster, high_availability_config.declare, kubeconfig=kubeconfig):

            def patches() -> int:
                own = f"/namespaces/{considered}/"
                return sum(each.request.method == "PATCH" and own in each.request.path for each in proxy.log)

            if not list_seconds:
                await soon(lambda: patches() == 1)
            if nodes == 1:
                world.remove("Node", world.node("n1"))
            else:
                world.remove("Node", f"n1-{world.id}")
                world.node("n1")
            await soon(lambda: patches() >= 2)
