"""What is kept of objects: no more than the checks read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.node.critical_components import keys
from agent.node.critical_components.scheduling import Placement, placement_of
from kube.cache import View
from kube.objects import (
    Object,
    annotations,
    condition,
    controller_of,
    is_deleting,
    key,
    labels,
    resource_version,
    uid,
)
from kube.resources import NODES, PODS, Resource

DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
CSI_NODES = Resource("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False)

BY_NODE = "node"
TAINTED = "tainted"

_SELECTOR = f"{keys.CRITICAL}=true"


@dataclass(frozen=True, slots=True)
class NodeState:
    """A Node with the taint; of one without it only that it is there."""

    taints: tuple[Object, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    version: int = field(default=0, compare=False)

    @property
    def is_waiting(self) -> bool:
        return bool(self.taints)


_UNTAINTED = NodeState()


@dataclass(frozen=True, slots=True)
class PodState:
    """Of a critical component."""

    node: str
    is_alive: bool
    """Neither finished nor about to go."""
    is_ready: bool
    daemon_set: str
    """The uid of the DaemonSet that it belongs to."""
    drivers: frozenset[str]
    """Storage drivers that have to be there."""


@dataclass(frozen=True, slots=True)
class DaemonSetState:
    uid: str
    placement: Placement | None
    """None: no Node has to wait for it."""


def node_state(node: Object) -> NodeState:
    taints = (node.get("spec") or {}).get("taints") or []
    if all(taint.get("key") != keys.NOT_READY for taint in taints):
        return _UNTAINTED
    return NodeState(taints=tuple(taints), labels=labels(node), uid=uid(node), version=resource_version(node))


def pod_state(pod: Object) -> PodState:
    status, owner = pod.get("status") or {}, controller_of(pod) or {}
    is_daemon = owner.get("apiVersion") == "apps/v1" and owner.get("kind") == "DaemonSet"
    return PodState(
        node=(pod.get("spec") or {}).get("nodeName") or "" if key(pod).namespace == keys.NAMESPACE else "",
        is_alive=status.get("phase") not in {"Succeeded", "Failed"} and not is_deleting(pod),
        is_ready=(condition(pod, "Ready") or {}).get("status") == "True",
        daemon_set=owner.get("uid") or "" if is_daemon else "",
        drivers=frozenset(driver for name, driver in annotations(pod).items() if name.startswith(keys.WAIT_FOR_DRIVER)),
    )


def daemon_set_state(daemon_set: Object) -> DaemonSetState:
    template = (daemon_set.get("spec") or {}).get("template") or {}
    counts = (
        key(daemon_set).namespace == keys.NAMESPACE
        and labels(template).get(keys.CRITICAL) == "true"
        and not is_deleting(daemon_set)
    )
    return DaemonSetState(uid(daemon_set), placement_of(template.get("spec") or {}) if counts else None)


def drivers(csi_node: Object) -> frozenset[str]:
    listed = (csi_node.get("spec") or {}).get("drivers") or []
    return frozenset(driver.get("name") or "" for driver in listed)


def _tainted(node: NodeState) -> Iterator[bool]:
    if node.is_waiting:
        yield True


def _node_of(pod: PodState) -> Iterator[str]:
    if pod.node:
        yield pod.node


NODES_VIEW = View(NODES, node_state, indexes=((TAINTED, _tainted),))
PODS_VIEW = View(PODS, pod_state, label_selector=_SELECTOR, indexes=((BY_NODE, _node_of),))
DAEMON_SETS_VIEW = View(DAEMON_SETS, daemon_set_state, label_selector=_SELECTOR)
CSI_NODES_VIEW = View(CSI_NODES, drivers)
