"""What a Node with the taint waits for."""

from typing import Any

import pytest

from agent.resource_manager.node.critical_components.rules import (
    DaemonSetState,
    NodeState,
    PodState,
    Waiting,
    daemon_set_state,
    drivers_of,
    node_state,
    placement_of,
    pod_state,
    runs_on,
    waits_for,
    without_taint,
)
from gardener import keys
from kit.objects import obj
from kube.objects import Key, Object

CRITICAL_TAINT = {"key": keys.CRITICAL_COMPONENTS_NOT_READY, "effect": "NoSchedule"}
OTHER_TAINT = {"key": "x", "value": "y", "effect": "NoExecute"}
LABEL = {keys.CRITICAL_COMPONENT: "true"}
EVERYTHING = [{"operator": "Exists"}]


def node(*taints: Object, version: int = 4711, **labels: str) -> NodeState:
    meta = {"uid": "u", "resourceVersion": str(version), "labels": labels}
    return node_state(obj("v1 Node", "w1", **meta, spec={"taints": list(taints)}))


def daemon_set(
    name: str,
    *,
    template_labels: dict[str, str] = LABEL,
    namespace: str = "kube-system",
    deleting: bool = False,
    **spec: Any,
) -> tuple[Key, DaemonSetState]:
    template = {"metadata": {"labels": template_labels}, "spec": {"tolerations": EVERYTHING, **spec}}
    meta = {"uid": f"uid-of-{name}", "deletionTimestamp": "2024-05-01T12:00:00Z" if deleting else None}
    found = obj("apps/v1 DaemonSet", f"{namespace}/{name}", **meta, spec={"template": template})
    return Key(namespace, name), daemon_set_state(found)


def owned_by(name: str, *, api_version: str = "apps/v1", kind: str = "DaemonSet", controller: bool = True) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": controller}


def pod(
    name: str,
    *,
    ready: str = "True",
    owner: Object | None = None,
    phase: str = "Running",
    deleting: bool = False,
    namespace: str = "kube-system",
    wants: dict[str, str] | None = None,
) -> tuple[Key, PodState]:
    meta: Object = {"labels": LABEL, "annotations": wants or {}, "ownerReferences": [owner] if owner else []}
    meta |= {"deletionTimestamp": "2024-05-01T12:00:00Z"} if deleting else {}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}] if ready else []}
    found = obj("v1 Pod", f"{namespace}/{name}", **meta, spec={"nodeName": "w1"}, status=status)
    return Key(namespace, name), pod_state(found)


def waits_because(
    *daemon_sets: tuple[Key, DaemonSetState],
    pods: list[tuple[Key, PodState]] | None = None,
    registered: frozenset[str] = frozenset(),
    on: NodeState | None = None,
) -> Waiting | None:
    on = on or node(CRITICAL_TAINT, OTHER_TAINT)
    return waits_for("w1", on, daemon_sets=daemon_sets, pods=pods or [], drivers=registered)


def unscheduled(names: str) -> Waiting:
    text = "Node-critical DaemonSets found that were not scheduled to Node yet"
    return Waiting("UnscheduledNodeCriticalDaemonSets", f"{text}: {names}")


def unready(names: str) -> Waiting:
    return Waiting("UnreadyNodeCriticalPods", f"Unready node-critical Pods found on Node: {names}")


def test_without_components_nothing_is_waited_for() -> None:
    assert waits_because() is None


def test_only_daemon_sets_that_run_there_are_waited_for() -> None:
    tolerates_one = [{"key": keys.CRITICAL_COMPONENTS_NOT_READY, "operator": "Exists"}]
    found = waits_because(
        daemon_set("cni"),
        daemon_set("proxy", tolerations=tolerates_one),
        daemon_set("win", nodeSelector={"kubernetes.io/os": "windows"}),
        daemon_set("lazy", template_labels={}),
        daemon_set("half", template_labels={keys.CRITICAL_COMPONENT: "yes"}),
        daemon_set("elsewhere", namespace="default"),
    )
    assert found == unscheduled("kube-system/cni")


def test_names_come_in_a_stable_order() -> None:
    assert waits_because(daemon_set("b"), daemon_set("a")) == unscheduled("kube-system/a, kube-system/b")
    pods = [pod("b", ready="False"), pod("a", ready="")]
    assert waits_because(pods=pods) == unready("kube-system/a, kube-system/b")


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (owned_by("cni"), None),
        *(
            (stranger, unscheduled("kube-system/cni"))
            for stranger in (
                owned_by("other"),
                owned_by("cni", controller=False),
                owned_by("cni", api_version="apps/v1beta1"),
                owned_by("cni", api_version="example.com/v1"),
                owned_by("cni", kind="ReplicaSet"),
            )
        ),
    ],
)
def test_a_pod_belongs_to_its_daemon_set_by_uid(owner: Object, expected: Waiting | None) -> None:
    assert waits_because(daemon_set("cni"), pods=[pod("p", owner=owner)]) == expected


def test_a_daemon_set_that_is_about_to_go_is_not_waited_for() -> None:
    assert waits_because(daemon_set("cni", deleting=True)) is None


@pytest.mark.parametrize(
    ("state", "is_awaited"),
    [
        ({}, False),
        *(({"ready": ready}, True) for ready in ("False", "Unknown", "")),
        # A pod that is finished or about to go counts as gone.
        *(({"phase": phase, "ready": "False"}, False) for phase in ("Succeeded", "Failed")),
        ({"deleting": True, "ready": "False"}, False),
    ],
)
def test_every_pod_has_to_be_ready(state: dict[str, Any], is_awaited: bool) -> None:
    assert waits_because(pods=[pod("a", **state)]) == (unready("kube-system/a") if is_awaited else None)
    if not is_awaited and state:  # what is to run there has to run there
        evicted = [pod("a", owner=owned_by("cni"), **state)]
        assert waits_because(daemon_set("cni"), pods=evicted) == unscheduled("kube-system/cni")


def test_storage_drivers_are_waited_for() -> None:
    wants = {f"{keys.WAIT_FOR_CSI_NODE_PREFIX}a": "disk", f"{keys.WAIT_FOR_CSI_NODE_PREFIX}b": "file", "other": "none"}
    pods = [pod("p", wants=wants), pod("q", wants={f"{keys.WAIT_FOR_CSI_NODE_PREFIX}z": "disk"})]
    reason = "UnreadyRequiredCSIDrivers"
    text = "Unready required CSI drivers for Node: "
    assert waits_because(pods=pods) == Waiting(reason, f"{text}[disk file]")
    assert waits_because(pods=pods, registered=frozenset({"disk", "x"})) == Waiting(reason, f"{text}[file]")
    assert waits_because(pods=pods, registered=frozenset({"disk", "file"})) is None


def test_the_checks_come_in_order() -> None:
    wants = {f"{keys.WAIT_FOR_CSI_NODE_PREFIX}a": "disk"}
    broken = [pod("p", ready="False", wants=wants)]
    assert waits_because(daemon_set("cni"), pods=broken) == unscheduled("kube-system/cni")
    assert waits_because(pods=broken) == unready("kube-system/p")


def test_pods_elsewhere_are_on_no_node() -> None:
    _, found = pod("p", namespace="default")
    assert found.node == ""


def test_drivers_are_read_from_a_csi_node() -> None:
    assert drivers_of({"spec": {"drivers": [{"name": "a"}, {"name": "b"}]}}) == {"a", "b"}
    assert drivers_of({"spec": {"drivers": None}}) == frozenset()


# --- the taint


def test_of_a_node_without_the_taint_nothing_is_kept() -> None:
    assert node(OTHER_TAINT) == NodeState()
    assert not node(OTHER_TAINT).is_waiting
    assert node(CRITICAL_TAINT).is_waiting
    assert node_state({"metadata": {"name": "a"}}) == NodeState()


def test_every_taint_with_the_key_goes_and_the_others_stay_in_order() -> None:
    last = {"key": "z", "effect": "NoSchedule"}
    tainted = node(OTHER_TAINT, CRITICAL_TAINT, {**CRITICAL_TAINT, "effect": "NoExecute", "value": "v"}, last)
    assert without_taint(tainted) == {
        "metadata": {"resourceVersion": "4711"},
        "spec": {"taints": [OTHER_TAINT, last]},
    }
    assert without_taint(node(CRITICAL_TAINT)) == {"metadata": {"resourceVersion": "4711"}, "spec": {"taints": None}}


def test_a_new_version_alone_is_no_change() -> None:
    assert node(CRITICAL_TAINT, version=1) == node(CRITICAL_TAINT, version=2)
    assert node(CRITICAL_TAINT) != node(CRITICAL_TAINT, a="b")


# --- where a DaemonSet runs


def runs(*taints: Object, labels: dict[str, str] | None = None, **pod_spec: Any) -> bool:
    return runs_on(placement_of(pod_spec), name="w1", labels=labels or {}, taints=taints)


def affinity(*terms: Object) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(key: str, operator: str, *values: str) -> Object:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (expression("a", "In", "1", "2"), True),
        (expression("a", "In", "2"), False),
        (expression("b", "In", "1"), False),
        (expression("a", "In"), False),
        (expression("a", "NotIn", "2"), True),
        (expression("a", "NotIn", "1"), False),
        (expression("b", "NotIn", "1"), True),
        (expression("b", "NotIn"), False),
        (expression("a", "Exists"), True),
        (expression("b", "Exists"), False),
        (expression("a", "Exists", "1"), False),
        (expression("a", "DoesNotExist"), False),
        (expression("b", "DoesNotExist"), True),
        (expression("n", "Gt", "9"), True),
        (expression("n", "Gt", "10"), False),
        (expression("n", "Lt", "11"), True),
        (expression("n", "Lt", "9"), False),
        (expression("n", "Gt", "x"), False),
        (expression("n", "Gt", "1", "2"), False),
        (expression("a", "Gt", "9" * 5000), False),
        (expression("text", "Gt", "1"), False),
        (expression("b", "Lt", "1"), False),
        (expression("a", "Unknown", "1"), False),
        (field("metadata.name", "In", "w1"), True),
        (field("metadata.name", "In", "w2"), False),
        (field("metadata.name", "NotIn", "w2"), True),
        (field("metadata.name", "NotIn", "w1"), False),
        (field("metadata.name", "In", "w1", "w2"), False),
        (field("metadata.name", "Exists"), False),
        (field("metadata.uid", "In", "w1"), False),
        ({**expression("a", "Exists"), **field("metadata.name", "In", "w2")}, False),
        ({**expression("a", "Exists"), **field("metadata.name", "In", "w1")}, True),
        ({}, False),
        ({"matchExpressions": None, "matchFields": []}, False),
    ],
)
def test_a_term_of_the_node_affinity(term: Object, expected: bool) -> None:
    labels = {"a": "1", "n": "10", "text": "x"}
    assert runs(labels=labels, affinity=affinity(term)) is expected
    assert runs(labels=labels, affinity=affinity({}, term)) is expected


@pytest.mark.parametrize(
    ("pod_spec", "labels", "expected"),
    [
        ({}, {}, True),
        ({"nodeName": "w1"}, {}, True),
        ({"nodeName": "w2"}, {}, False),
        ({"nodeSelector": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"nodeSelector": {"a": "1", "b": "1"}}, {"a": "1"}, False),
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, {}, True),
        ({"affinity": {"podAntiAffinity": {}}}, {}, True),
        ({"affinity": affinity()}, {}, False),
        ({"affinity": affinity(expression("a", "Exists"), expression("b", "Exists"))}, {"b": ""}, True),
    ],
)
def test_the_template_may_name_the_node_or_select_it(pod_spec: Object, labels: dict[str, str], expected: bool) -> None:
    assert runs(labels=labels, **pod_spec) is expected


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> Object:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k"}, False),
        ({"key": "k", "operator": "Lt", "value": "v"}, False),
    ],
)
def test_a_taint_has_to_be_tolerated(toleration: Object, expected: bool) -> None:
    assert runs(taint("k", value="v"), tolerations=[toleration]) is expected


NODE = "node.kubernetes.io"


@pytest.mark.parametrize(
    ("tainted", "pod_spec", "expected"),
    [
        *((taint(f"{NODE}/{name}-pressure"), {}, True) for name in ("disk", "memory", "pid")),
        *((taint(f"{NODE}/{name}-pressure", "NoExecute"), {}, False) for name in ("disk", "memory", "pid")),
        (taint(f"{NODE}/unschedulable"), {}, True),
        (taint(f"{NODE}/unschedulable", "NoExecute"), {}, False),
        *((taint(f"{NODE}/{name}", "NoExecute"), {}, True) for name in ("not-ready", "unreachable")),
        *((taint(f"{NODE}/{name}"), {}, False) for name in ("not-ready", "unreachable")),
        (taint(f"{NODE}/network-unavailable"), {}, False),
        (taint(f"{NODE}/network-unavailable"), {"hostNetwork": True}, True),
        # One that only prefers keeps nothing away.
        (taint("k", "PreferNoSchedule"), {}, True),
        (taint("k", "NoExecute"), {}, False),
    ],
)
def test_some_taints_are_tolerated_by_every_daemon_set(tainted: Object, pod_spec: Object, expected: bool) -> None:
    assert runs(tainted, **pod_spec) is expected
