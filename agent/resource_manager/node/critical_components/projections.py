"""What is kept of objects: no more than the checks read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from agent.resource_manager.node.critical_components.rules import Placement, placement_of
from gardener import keys
from kube.objects import (
    Object,
    annotations,
    condition,
    controller_of,
    is_deleting,
    key,
    labels,
    mapping,
    mappings,
    resource_version,
    spec,
    text,
    uid,
)
from kube.resources import CSI_NODES, DAEMON_SETS, NODES, PODS
from kube.runtime.cache import View

NAMESPACE = "kube-system"
"""Components elsewhere don't count."""


BY_NODE = "node"
TAINTED = "tainted"

_SELECTOR = f"{keys.CRITICAL_COMPONENT}=true"


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
    taints = mappings(spec(node).get("taints"))
    if all(taint.get("key") != keys.CRITICAL_COMPONENTS_NOT_READY for taint in taints):
        return _UNTAINTED
    return NodeState(taints=tuple(taints), labels=labels(node), uid=uid(node), version=resource_version(node))


def pod_state(pod: Object) -> PodState:
    status, owner = mapping(pod.get("status")), controller_of(pod) or {}
    is_daemon = owner.get("apiVersion") == "apps/v1" and owner.get("kind") == "DaemonSet"
    return PodState(
        node=text(spec(pod).get("nodeName")) if key(pod).namespace == NAMESPACE else "",
        is_alive=status.get("phase") not in ("Succeeded", "Failed") and not is_deleting(pod),
        is_ready=(condition(pod, "Ready") or {}).get("status") == "True",
        daemon_set=text(owner.get("uid")) if is_daemon else "",
        drivers=frozenset(
            driver for name, driver in annotations(pod).items() if name.startswith(keys.WAIT_FOR_CSI_NODE_PREFIX)
        ),
    )


def daemon_set_state(daemon_set: Object) -> DaemonSetState:
    template = mapping(spec(daemon_set).get("template"))
    counts = (
        key(daemon_set).namespace == NAMESPACE
        and labels(template).get(keys.CRITICAL_COMPONENT) == "true"
        and not is_deleting(daemon_set)
    )
    return DaemonSetState(uid(daemon_set), placement_of(spec(template)) if counts else None)


def drivers(csi_node: Object) -> frozenset[str]:
    return frozenset(text(driver.get("name")) for driver in mappings(spec(csi_node).get("drivers")))


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
