"""Many Nodes that join at once: delay of the removal of taints, spread of the delays of their agents, and cost.

Each Node has pods of three critical DaemonSets, made by the DaemonSet controller, bound by the scheduler and run by a
simulated kubelet. A watch shows when the last of them became ready, and when the taint was gone.
"""

import asyncio
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent.resource_manager.node.agent_reconciliation_delay import delays
from agent.resource_manager.node.critical_components.rules import NAMESPACE
from benchmarks import report
from benchmarks.measuring import Meter, News, Phase, connected, running
from benchmarks.report import Table, number
from benchmarks.workload import each_of
from gardener.keys import CRITICAL_COMPONENT, CRITICAL_COMPONENTS_NOT_READY, RECONCILIATION_DELAY
from kube.objects import Object, annotations, condition, uid
from kube.resources import DAEMON_SETS, NODES, PODS, SERVICE_ACCOUNTS
from kube.runtime.cache import Change, View
from kube.runtime.client import Client

_COMPONENTS = 3
_ACCOUNT = "critical"
_MOST_DELAY = 300.0
_QUIET_SECONDS = 5.0
_REST_SECONDS = 30.0
_LOOK_SECONDS = 0.05
CONTROLLERS: dict[str, Any] = {
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


class _Seen(News):
    """Times by the name of the Node."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[str, float] = {}
        """Time when the last of its pods became ready."""
        self.free: dict[str, float] = {}
        """Time when its taint was gone."""
        self.delays: dict[str, str | None] = {}

    def node(self, change: Change[NodeState]) -> None:
        self.notify(change)
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
    async with running(controllers=CONTROLLERS) as (cluster, agent, audit), connected(cluster) as (client, caches):
        seen = _Seen()
        nodes = caches.acquire(View(NODES, node_state))
        pods = caches.acquire(View(PODS, _pod, label_selector=f"{CRITICAL_COMPONENT}=true"))
        await nodes.synced.wait()
        await pods.synced.wait()
        nodes.subscribe(seen.node)
        pods.subscribe(seen.pod)
        agent.start()
        await asyncio.to_thread(agent.wait_until_ready)
        await make_components(client)
        rows = await _phases(Meter(agent, audit), client, seen, count)
    note = f"Each Node has the pods of {_COMPONENTS} DaemonSets. *each*: calls per Node, Events among them."
    return Table(f"{count} Nodes that join at once", _COLUMNS, rows, [note])


async def _phases(meter: Meter, client: Client, seen: _Seen, count: int) -> list[tuple[str, ...]]:
    meter.start()
    await join(client, range(count))
    at = await seen.until(
        lambda: len(seen.free) == count and seen.are_spread(), what="all Nodes to be free", pause=_LOOK_SECONDS
    )
    waits = sorted(seen.waits())
    note = (
        f"from the last pod to the end of the taint: median {statistics.median(waits):.3f} s, "
        f"99 % {waits[len(waits) * 99 // 100]:.3f} s, max {waits[-1]:.3f} s; delays as specified"
    )
    rows = [_row(await _stopped(meter, "join", at=at, note=note), nodes=count)]

    meter.start()
    await join(client, [count])
    at = await seen.until(
        lambda: len(seen.free) == count + 1 and seen.are_spread(), what="one more Node to be free", pause=_LOOK_SECONDS
    )
    rows.append(_row(await _stopped(meter, "one more", at=at, note="all delays change"), nodes=1))

    meter.start()
    await asyncio.sleep(_REST_SECONDS)
    rest = await _stopped(meter, "rest", at=time.monotonic(), note=f"{_REST_SECONDS:.0f} s")
    return [*rows, _row(rest, nodes=count)]


async def _stopped(meter: Meter, name: str, *, at: float, note: str) -> Phase:
    """End the phase after all Events, which are written one after the other, some time after their cause."""
    before: dict[tuple[str, str], int] | None = None
    while before != (calls := meter.calls()):
        before = calls
        await asyncio.sleep(_QUIET_SECONDS)
    return await meter.stop(name, at=at, note=note, quiet=0.0)


def _row(phase: Phase, *, nodes: int) -> tuple[str, ...]:
    each = number(sum(phase.calls.values()) / nodes)
    cells = number(phase.seconds), number(phase.cpu, 2), phase.memory, phase.note
    return phase.name, report.calls(phase.calls), each, *cells


async def make_components(client: Client) -> list[Object]:
    """Create DaemonSets that each Node waits for."""
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
    """Create Nodes with the taint, and pods of `components` on them; by default their controller creates those."""
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
        node = {"metadata": meta, "spec": {"taints": [taint]}, "status": {"addresses": [address]}}
        await client.create(NODES, node)
        for owner in owners:
            await client.create(PODS, _pod_of(owner, name))

    await each_of(indexes, one)


def _pod_of(daemon_set: Object, node: str) -> Object:
    """Pod as the DaemonSet controller and the scheduler leave it."""
    template = daemon_set["spec"]["template"]
    name = daemon_set["metadata"]["name"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": uid(daemon_set), "controller": True}
    meta = {"name": f"{name}-{node}", "namespace": NAMESPACE, "ownerReferences": [owner]}
    return {"metadata": template["metadata"] | meta, "spec": template["spec"] | {"nodeName": node}}
