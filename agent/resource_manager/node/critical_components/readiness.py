"""Whether all that is critical for a Node is ready there: three checks in order, the first that fails is reported."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.resource_manager.node.critical_components.projections import DaemonSetState, NodeState, PodState
from agent.resource_manager.node.critical_components.rules import runs_on
from gardener import keys
from kube.objects import Key, Object

UNSCHEDULED = "UnscheduledNodeCriticalDaemonSets"
UNREADY = "UnreadyNodeCriticalPods"
MISSING_DRIVERS = "UnreadyRequiredCSIDrivers"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why the taint has to stay."""

    reason: str
    message: str


def waits_for(
    node_name: str,
    node: NodeState,
    *,
    daemon_sets: Iterable[tuple[Key, DaemonSetState]],
    pods: Sequence[tuple[Key, PodState]],
    drivers: frozenset[str],
) -> Waiting | None:
    """None: nothing, all is ready.

    Pods that are finished or about to go count as if they were gone: their controllers make others.

    Args: pods: those on the Node; drivers: the storage drivers that are registered there.
    """
    alive = [(key, pod) for key, pod in pods if pod.is_alive]
    scheduled = {pod.daemon_set for _, pod in alive}
    unscheduled = [
        key
        for key, daemon_set in daemon_sets
        if daemon_set.placement is not None
        and daemon_set.uid not in scheduled
        and runs_on(daemon_set.placement, name=node_name, labels=node.labels, taints=node.taints)
    ]
    if unscheduled:
        text = "Node-critical DaemonSets found that were not scheduled to Node yet"
        return Waiting(UNSCHEDULED, f"{text}: {_names(unscheduled)}")
    if unready := [key for key, pod in alive if not pod.is_ready]:
        return Waiting(UNREADY, f"Unready node-critical Pods found on Node: {_names(unready)}")
    required = frozenset[str]().union(*(pod.drivers for _, pod in alive))
    if missing := sorted(required - drivers):
        return Waiting(MISSING_DRIVERS, f"Unready required CSI drivers for Node: [{' '.join(missing)}]")
    return None


def without_taint(node: NodeState) -> Object:
    """The merge patch that removes the taint from the Node as it is known, and leaves the others in their order."""
    others = [taint for taint in node.taints if taint.get("key") != keys.CRITICAL_COMPONENTS_NOT_READY]
    return {"metadata": {"resourceVersion": str(node.version)}, "spec": {"taints": others or None}}


def _names(found: Iterable[Key]) -> str:
    return ", ".join(map(str, sorted(found)))
