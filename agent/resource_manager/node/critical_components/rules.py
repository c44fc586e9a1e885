"""Check of the critical components of a Node, based on cached parts of objects."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gardener import keys
from kube.objects import (
    Key,
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
    string_map,
    text,
    uid,
)

# --- Nodes on which the DaemonSet controller wants a pod of a DaemonSet


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_IMPLICIT = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
_IMPLICIT_ON_HOST_NETWORK = (
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"},
)
_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Node requirements of a pod template."""

    node_name: str
    node_selector: Mapping[str, str]
    terms: Sequence[Object] | None
    """Terms of the required node affinity, one of which has to match; None if there is none."""
    tolerations: Sequence[Object]
    on_host_network: bool


def placement_of(pod_spec: Mapping[str, Any]) -> Placement:
    affinity = mapping(mapping(pod_spec.get("affinity")).get("nodeAffinity"))
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return Placement(
        node_name=text(pod_spec.get("nodeName")),
        node_selector=string_map(pod_spec.get("nodeSelector")),
        terms=None if required is None else mappings(mapping(required).get("nodeSelectorTerms")),
        tolerations=mappings(pod_spec.get("tolerations")),
        on_host_network=bool(pod_spec.get("hostNetwork")),
    )


def runs_on(placement: Placement, *, name: str, labels: Mapping[str, str], taints: Iterable[Object]) -> bool:
    """Whether the DaemonSet needs a pod on the Node with this name, these labels and taints."""
    if placement.node_name not in {"", name}:
        return False
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    if placement.terms is not None and not any(_matches(term, name, labels) for term in placement.terms):
        return False
    tolerations = [*placement.tolerations, *_IMPLICIT]
    if placement.on_host_network:
        tolerations += _IMPLICIT_ON_HOST_NETWORK
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.get("effect") in _KEEPS_AWAY
    )


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return (toleration.get("value") or "") == (taint.get("value") or "")
        case _:
            return False


def _matches(term: Object, name: str, labels: Mapping[str, str]) -> bool:
    """Whether a term matches; an empty or invalid term matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(_matches_expression(each, labels) for each in expressions) and all(
        _matches_field(each, name) for each in fields
    )


def _matches_field(field: Object, name: str) -> bool:
    values = field.get("values") or []
    if field.get("key") != "metadata.name" or len(values) != 1:
        return False
    match field.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case _:
            return False


def _matches_expression(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key") or "", expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return bool(values) and labels.get(key) not in values
        case "Exists":
            return not values and key in labels
        case "DoesNotExist":
            return not values and key not in labels
        case "Gt":
            return _compares(labels.get(key), values, lambda has, bound: has > bound)
        case "Lt":
            return _compares(labels.get(key), values, lambda has, bound: has < bound)
        case _:
            return False


def _compares(value: str | None, bounds: Sequence[str], holds: Callable[[int, int], bool]) -> bool:
    """Whether the comparison of two integers holds; false for any other values."""
    if value is None or len(bounds) != 1 or not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bounds[0]):
        return False
    return holds(int(value), int(bounds[0]))


# --- cached parts of objects


NAMESPACE = "kube-system"
"""Namespace of components; others do not count."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """A Node with the taint; empty for one without it."""

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
    """State of a pod of a critical component."""

    node: str
    is_alive: bool
    """Whether it is neither finished nor being deleted."""
    is_ready: bool
    daemon_set: str
    """uid of its DaemonSet."""
    drivers: frozenset[str]
    """Required storage drivers."""


@dataclass(frozen=True, slots=True)
class DaemonSetState:
    uid: str
    placement: Placement | None
    """None if no Node has to wait for it."""


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


def drivers_of(csi_node: Object) -> frozenset[str]:
    return frozenset(text(driver.get("name")) for driver in mappings(spec(csi_node).get("drivers")))


# --- three checks in order; the first failure is reported


UNSCHEDULED = "UnscheduledNodeCriticalDaemonSets"
UNREADY = "UnreadyNodeCriticalPods"
MISSING_DRIVERS = "UnreadyRequiredCSIDrivers"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Reason why the taint has to stay."""

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
    """Return the reason to wait; None if all components are ready.

    Finished pods and those being deleted count as gone: their controllers create others.

    Args: pods: pods on the Node; drivers: storage drivers that are registered there.
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
    """Return the merge patch that removes the taint from the known version of the Node, and keeps the others."""
    others = [taint for taint in node.taints if taint.get("key") != keys.CRITICAL_COMPONENTS_NOT_READY]
    return {"metadata": {"resourceVersion": str(node.version)}, "spec": {"taints": others or None}}


def _names(found: Iterable[Key]) -> str:
    return ", ".join(map(str, sorted(found)))
