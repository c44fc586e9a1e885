"""Many Nodes that join at once: when their taints go, how the delays of their agents are spread, and what that costs.

Each Node has pods of three critical DaemonSets, made by the DaemonSet controller, bound by the scheduler and run by a
played kubelet. A watch tells when the last of them became ready, and when the taint was gone.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.resource_manager.node.agent_reconciliation_delay.delays import delays
from agent.resource_manager.node.critical_components.projections import NAMESPACE
from benchmarks import report
from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, number
from benchmarks.workload import install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from gardener.keys import CRITICAL_COMPONENT, CRITICAL_COMPONENTS_NOT_READY, RECONCILIATION_DELAY
from kube.cache import Caches, Change, View
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.objects import Object, annotations, condition, uid
from kube.resources import DAEMON_SETS, NODES, PODS, SERVICE_ACCOUNTS

_COMPONENTS = 3
_ACCOUNT = "critical"
_MOST_DELAY = 300.0
_QUIET_SECONDS = 5.0
_REST_SECONDS = 30.0
_PATIENCE = 600.0
_AT_ONCE = 50
_CONTROLLERS: dict[str, Any] = {
    "nodeCriticalComponents": {"enabled": True},
    "nodeAgentReconciliationDelay": {"enabled": True},
}
_COLUMNS = ("phase", "calls", "each", "s", "CPU s", "RSS (peak) MiB", "")


@dataclass(frozen=True, slots=True)
class NodeState:
    has_taint: bool
    delay: str | None


@dataclass(frozen=True, slots=True)
class _Pod:
    node: str
    is_ready: bool


def node_state(obj: Object) -> NodeState:
    taints = (obj.get("spec") or {}).get("taints") or []
    return NodeState(
        any(taint["key"] == CRITICAL_COMPONENTS_NOT_READY for taint in taints),
        annotations(obj).get(RECONCILIATION_DELAY),
    )


def _pod(obj: Object) -> _Pod:
    ready = (condition(obj, "Ready") or {}).get("status") == "True"
    return _Pod((obj.get("spec") or {}).get("nodeName") or "", ready)


@dataclass(slots=True)
class _Seen:
    """Moments, by the name of the Node."""

    ready: dict[str, float] = field(default_factory=dict)
    """When the last of its pods became ready."""
    free: dict[str, float] = field(default_factory=dict)
    """When its taint was gone."""
    delays: dict[str, str | None] = field(default_factory=dict)

    def node(self, change: Change[NodeState]) -> None:
        if change.new is not None:
            self.delays[change.key.name] = change.new.delay
            if not change.new.has_taint:
                self.free.setdefault(change.key.name, time.monotonic())

    def pod(self, change: Change[_Pod]) -> None:
        if change.new is not None and change.new.is_ready and not (change.old and change.old.is_ready):
            self.ready[change.new.node] = time.monotonic()

    def are_spread(self) -> bool:
        return self.delays == delays(self.delays, least=0.0, most=_MOST_DELAY)

    def waits(self) -> list[float]:
        """Seconds from the last pod to the end of the taint."""
        return [at - self.ready[name] for name, at in self.free.items()]


async def measure(*, count: int) -> Table:
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        with (
            tempfile.TemporaryDirectory() as directory,
            Agent(cluster, Path(directory), controllers=_CONTROLLERS) as agent,
        ):
            audit = cluster.audit()
            try:
                async with _observing(cluster) as (client, seen):
                    agent.start()
                    await asyncio.to_thread(agent.wait_until_ready)
                    await make_components(client)
                    rows = await _phases(agent, audit, client, seen, count)
            finally:
                audit.close()
    note = f"Each Node has the pods of {_COMPONENTS} DaemonSets. *each*: calls per Node, Events among them."
    return Table(f"{count} Nodes that join at once", _COLUMNS, rows, [note])


async def _phases(agent: Agent, audit: Audit, client: Client, seen: _Seen, count: int) -> list[tuple[str, ...]]:
    rows = []
    meter = _Meter(agent, audit)
    await join(client, range(count))
    await _until(lambda: len(seen.free) == count and seen.are_spread(), what="all Nodes to be free")
    waits = sorted(seen.waits())
    note = (
        f"from the last pod to the end of the taint: median {statistics.median(waits):.3f} s, "
        f"99 % {waits[len(waits) * 99 // 100]:.3f} s, max {waits[-1]:.3f} s; delays as specified"
    )
    rows.append(await meter.row("join", nodes=count, note=note))

    meter = _Meter(agent, audit)
    await join(client, [count])
    await _until(lambda: len(seen.free) == count + 1 and seen.are_spread(), what="one more Node to be free")
    rows.append(await meter.row("one more", nodes=1, note="all delays change"))

    meter = _Meter(agent, audit)
    await asyncio.sleep(_REST_SECONDS)
    rows.append(await meter.row("rest", nodes=count, note=f"{_REST_SECONDS:.0f} s"))
    return rows


class _Meter:
    """What the agent uses from now on."""

    def __init__(self, agent: Agent, audit: Audit) -> None:
        self._agent = agent
        self._audit = audit
        self._mark = audit.mark()
        agent.forget_peak()
        self._cpu = agent.cpu_seconds()
        self._began = time.monotonic()

    async def row(self, name: str, *, nodes: int, note: str) -> tuple[str, ...]:
        seconds = time.monotonic() - self._began
        counts = await self._calls()
        cpu = self._agent.cpu_seconds() - self._cpu
        memory = f"{self._agent.resident_mib():.0f} ({self._agent.peak_mib():.0f})"
        each = number(sum(counts.values()) / nodes)
        return name, report.calls(counts), each, number(seconds), number(cpu, 2), memory, note

    async def _calls(self) -> dict[tuple[str, str], int]:
        """All of them: Events are written one after the other, some time after what they are about."""
        while True:
            before = self._audit.count(since=self._mark, user_agent=USER_AGENT)
            await asyncio.sleep(_QUIET_SECONDS)
            counts = self._audit.count(since=self._mark, user_agent=USER_AGENT)
            if counts == before:
                return counts


@asynccontextmanager
async def _observing(cluster: Cluster) -> AsyncIterator[tuple[Client, _Seen]]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        caches = Caches(client)
        seen = _Seen()
        try:
            nodes = caches.acquire(View(NODES, node_state))
            pods = caches.acquire(View(PODS, _pod, label_selector=f"{CRITICAL_COMPONENT}=true"))
            await nodes.synced.wait()
            await pods.synced.wait()
            nodes.subscribe(seen.node)
            pods.subscribe(seen.pod)
            yield client, seen
        finally:
            await caches.close()


async def make_components(client: Client) -> list[Object]:
    """DaemonSets that each Node waits for."""
    await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": _ACCOUNT, "namespace": NAMESPACE}})
    return [await client.create(DAEMON_SETS, _daemon_set(f"critical-{index}")) for index in range(_COMPONENTS)]


def _daemon_set(name: str) -> Object:
    spec = {
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "registry.example/image:1"}],
        "terminationGracePeriodSeconds": 0,
        "serviceAccountName": _ACCOUNT,
    }
    template = {"metadata": {"labels": {"app": name, CRITICAL_COMPONENT: "true"}}, "spec": spec}
    meta = {"name": name, "namespace": NAMESPACE, "labels": {CRITICAL_COMPONENT: "true"}}
    return {"metadata": meta, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}


async def join(client: Client, indexes: Iterable[int], *, components: Iterable[Object] = ()) -> None:
    """Nodes with the taint.

    Args: components: DaemonSets whose pods are put there; none: their controller does that.
    """
    limit = asyncio.Semaphore(_AT_ONCE)
    owners = list(components)

    async def one(index: int) -> None:
        name = f"node-{index}"
        meta = {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }
        address = {"type": "InternalIP", "address": f"10.65.{index // 250}.{index % 250 + 1}"}
        taint = {"key": CRITICAL_COMPONENTS_NOT_READY, "effect": "NoSchedule"}
        async with limit:
            await client.create(
                NODES, {"metadata": meta, "spec": {"taints": [taint]}, "status": {"addresses": [address]}}
            )
            for owner in owners:
                await client.create(PODS, _pod_of(owner, name))

    await asyncio.gather(*map(one, indexes))


def _pod_of(daemon_set: Object, node: str) -> Object:
    """As the DaemonSet controller and the scheduler leave it."""
    template = daemon_set["spec"]["template"]
    name = daemon_set["metadata"]["name"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": uid(daemon_set), "controller": True}
    meta = {"name": f"{name}-{node}", "namespace": NAMESPACE, "ownerReferences": [owner]}
    return {"metadata": template["metadata"] | meta, "spec": template["spec"] | {"nodeName": node}}


async def _until(holds: Callable[[], bool], *, what: str) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while not holds():  # noqa: ASYNC110 - several watches tell
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise DevclusterError(f"waited {_PATIENCE:.0f} s in vain for {what}") from None
