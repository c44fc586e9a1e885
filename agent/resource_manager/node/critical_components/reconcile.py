"""One Node with the taint: the reason to wait, reported when it changes, and the removal of the taint.

All data come from watches, so a check costs no request. While Pods become ready one after the other the reason changes
quickly; it is reported at most once between two regular checks.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import structlog

from agent.resource_manager.node.critical_components.rules import (
    DaemonSetState,
    NodeState,
    PodState,
    Waiting,
    daemon_set_state,
    drivers_of,
    node_state,
    pod_state,
    waits_for,
    without_taint,
)
from gardener import keys
from kube.clock import format_duration
from kube.errors import Conflict
from kube.objects import Key
from kube.resources import CSI_NODES, DAEMON_SETS, NODES, PODS
from kube.runtime.cache import Store, View
from kube.runtime.client import Client
from kube.runtime.controller import Done, Requeue, RequeueAfter, Result
from kube.runtime.events import EventRecorder, EventType

READY = "NodeCriticalComponentsReady"
BY_NODE = "node"
TAINTED = "tainted"

_REPORTER = "node-critical-components-controller"

_SELECTOR = f"{keys.CRITICAL_COMPONENT}=true"

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def _tainted(node: NodeState) -> Iterator[bool]:
    if node.is_waiting:
        yield True


def _node_of(pod: PodState) -> Iterator[str]:
    if pod.node:
        yield pod.node


NODES_VIEW = View(NODES, node_state, indexes=((TAINTED, _tainted),))
PODS_VIEW = View(PODS, pod_state, label_selector=_SELECTOR, indexes=((BY_NODE, _node_of),))
DAEMON_SETS_VIEW = View(DAEMON_SETS, daemon_set_state, label_selector=_SELECTOR)
CSI_NODES_VIEW = View(CSI_NODES, drivers_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStores:
    nodes: Store[NodeState]
    pods: Store[PodState]
    daemon_sets: Store[DaemonSetState]
    csi_nodes: Store[frozenset[str]]


@dataclass(slots=True)
class _Wait:
    """State of a Node while it has the taint."""

    since: float
    saw_it_begin: bool
    reported: Waiting | None = None
    reported_at: float = float("-inf")


class Waits:
    """Nodes with the taint, and since when.

    Args: now: monotonic seconds.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._waits: dict[str, _Wait] = {}

    def begins(self, name: str, *, seen: bool) -> None:
        """Note that a Node has the taint; `seen`: it has just got it."""
        self._waits.setdefault(name, _Wait(self.now(), seen))

    def ends(self, name: str) -> None:
        """Note that a Node is gone, or has lost the taint."""
        self._waits.pop(name, None)

    def get(self, name: str) -> _Wait | None:
        return self._waits.get(name)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    stores: NodeStores
    waits: Waits
    recorder: EventRecorder
    backoff: float
    """Seconds between two checks of a Node that is not ready, without changes there; 0 for none."""

    async def reconcile(self, key: Key) -> Result:
        node = self.stores.nodes.get(key)
        if node is None or not node.is_waiting:
            return Done()
        reason = waits_for(
            key.name,
            node,
            daemon_sets=self.stores.daemon_sets.items(),
            pods=list(self.stores.pods.by_index(BY_NODE, key.name)),
            drivers=self.stores.csi_nodes.get(key) or frozenset(),
        )
        if reason is not None:
            self._warn(key.name, node, reason)
            return RequeueAfter(self.backoff) if self.backoff else Done()
        return await self._remove_taint(key, node)

    async def _remove_taint(self, key: Key, node: NodeState) -> Result:
        wait = self.waits.get(key.name)
        try:
            written = await self.client.patch_if_exists(NODES, key.name, without_taint(node))
        except Conflict:
            return Requeue()  # kubelets write their Nodes all the time; the watch brings the new state
        if written is None:
            return Done()
        self.stores.nodes.observe(written)
        message = "All node-critical components got ready, removing taint"
        if wait is not None:
            seconds = format_duration(round(self.waits.now() - wait.since, 1))
            message += f" after {seconds}" if wait.saw_it_begin else f" after {seconds} or more"
        log.info("The taint of a Node was removed", node=key.name)
        self._event(key.name, node, "Normal", READY, message)
        return Done()

    def _warn(self, name: str, node: NodeState, reason: Waiting) -> None:
        wait = self.waits.get(name)
        if wait is None or wait.reported == reason or self.waits.now() - wait.reported_at < self.backoff:
            return
        wait.reported, wait.reported_at = reason, self.waits.now()
        self._event(name, node, "Warning", reason.reason, reason.message)

    def _event(self, name: str, node: NodeState, type_: EventType, reason: str, message: str) -> None:
        self.recorder.event(NODES.reference(name=name, uid=node.uid), type_, reason, message, reporter=_REPORTER)
