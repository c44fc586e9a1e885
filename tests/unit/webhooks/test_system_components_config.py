from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import strategies as st

from config.resource_manager.webhooks import SystemComponentsConfig, Toleration
from kit.objects import obj
from kit.webhooks.mutating import mapping, mutated, one_of, pods, record, several, state_of, well_behaved, words
from kube.runtime.watch import Deleted, Present
from webhooks.admission import Mutation
from webhooks.handlers import system_components_config

SYSTEM = {"worker.gardener.cloud/system-components": "true"}
T1 = {"key": "t1", "operator": "Exists"}
D = {"key": "d", "operator": "Equal", "value": "x", "effect": "NoSchedule"}
E = {"key": "e", "operator": "Exists", "effect": "NoExecute"}
STATES = ["node.kubernetes.io/not-ready", "node.cloudprovider.kubernetes.io/uninitialized", "x.kubernetes.io/y"]


def node(name: str, *taints: Any, labels: Any = SYSTEM, **metadata: str) -> Any:
    return obj("v1 Node", name, labels=labels, spec={"taints": list(taints)}, **metadata)


NODE = node(
    "n",
    {"key": "d", "value": "x", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    {"key": "e", "effect": "NoExecute"},
)


def mutation_of(*nodes: Any, **fields: Any) -> Mutation:
    settings = SystemComponentsConfig(enabled=True, **fields)
    return system_components_config.mutation(settings, state_of(*nodes))


def tolerations_after(mutation: Mutation, *tolerations: Any) -> Any:
    return mutated(mutation, {"spec": {"tolerations": list(tolerations)}})["spec"]["tolerations"]


def test_pods_get_what_is_configured_and_what_nodes_are_tainted_with() -> None:
    mutation = mutation_of(NODE, node_selector=SYSTEM, pod_tolerations=(Toleration(key="t1", operator="Exists"),))
    assert mutated(mutation, {"spec": {"tolerations": [T1]}}) == {"spec": {"tolerations": [T1, D, E]}}


def test_nodes_come_by_name_and_their_taints_in_order() -> None:
    mutation = mutation_of(node("b", {"key": "b2"}, {"key": "b1"}), node("a", {"key": "a"}, {"key": "b1"}))
    assert [toleration["key"] for toleration in tolerations_after(mutation)] == ["a", "b1", "b2"]


@pytest.mark.parametrize(("selector", "more"), [(SYSTEM, []), ({}, [{"key": "o", "operator": "Exists"}])])
def test_only_selected_nodes_count_and_without_a_selector_all(selector: Any, more: Any) -> None:
    mutation = mutation_of(NODE, node("other", {"key": "o"}, labels={}), node_selector=selector)
    assert tolerations_after(mutation) == [D, E, *more]


@pytest.mark.parametrize("key", [*STATES, "ToBeDeletedByClusterAutoscaler"])
def test_taints_about_the_state_of_a_node_are_not_tolerated(key: str) -> None:
    assert mutated(mutation_of(node("n", {"key": key, "effect": "NoSchedule"})), {"spec": {}}) == {"spec": {}}


def test_a_node_with_more_taints_than_pods_may_tolerate_does_not_count() -> None:
    hostile = node("a", *({"key": f"k{number}"} for number in range(51)))
    assert tolerations_after(mutation_of(hostile, NODE)) == [D, E]


def test_configured_tolerations_are_taken_whatever_they_are() -> None:
    configured = Toleration(key="node.kubernetes.io/x", operator="Exists", effect="NoExecute", toleration_seconds=0)
    everything = Toleration(operator="Exists")
    assert tolerations_after(mutation_of(pod_tolerations=(configured, everything, configured))) == [
        {"key": "node.kubernetes.io/x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        {"operator": "Exists"},
    ]


@pytest.mark.parametrize(
    ("own", "after"),
    [
        pytest.param([{**D, "operator": ""}], [{**D, "operator": ""}, E], id="no operator is Equal"),
        pytest.param([{**E, "value": ""}], [{**E, "value": ""}, D], id="an empty value is none"),
        pytest.param([{**D, "tolerationSeconds": 0}], [{**D, "tolerationSeconds": 0}, D, E], id="0 s are not for ever"),
        pytest.param([{**D, "tolerationSeconds": None}], [{**D, "tolerationSeconds": None}, E], id="null is for ever"),
        pytest.param([T1, E, T1, E, D], [T1, E, D], id="the pod's own appear once"),
        pytest.param([{"operator": "Exists"}], [{"operator": "Exists"}, D, E], id="a catch-all is like any other"),
    ],
)
def test_each_toleration_appears_once(own: Any, after: Any) -> None:
    assert tolerations_after(mutation_of(NODE), *own) == after


@pytest.mark.parametrize(
    ("own", "after"),
    [(None, {"a": "1", "b": "2"}), ({}, {"a": "1", "b": "2"}), ({"a": "0", "c": "3"}, {"a": "1", "b": "2", "c": "3"})],
)
def test_the_node_selector_is_merged(own: Any, after: Any) -> None:
    mutation = mutation_of(pod_node_selector={"a": "1", "b": "2"})
    assert mutated(mutation, {"spec": {"nodeSelector": own}}) == {"spec": {"nodeSelector": after}}


def owned_by(**changes: Any) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True, **changes}
    return {"metadata": {"ownerReferences": [{"kind": "Other", "controller": True}, owner]}, "spec": {}}


def test_pods_of_daemon_sets_are_left_alone() -> None:
    assert mutated(mutation_of(NODE, pod_node_selector=SYSTEM), owned_by()) == owned_by()


@pytest.mark.parametrize(
    "changes", [{"apiVersion": "apps/v1beta1"}, {"kind": "ReplicaSet"}, {"controller": False}, {"controller": None}]
)
def test_pods_of_others_are_not(changes: Any) -> None:
    assert mutated(mutation_of(NODE), owned_by(**changes))["spec"] == {"tolerations": [D, E]}


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"spec": {}}, {"spec": {"tolerations": []}}])
def test_nothing_to_add_is_no_change(pod: Any) -> None:
    assert mutated(mutation_of(node("n")), pod) == pod


def test_what_pods_tolerate_follows_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = Mock(wraps=system_components_config.needed)
    monkeypatch.setattr(system_components_config, "needed", needed)
    state = state_of(NODE)
    mutation = system_components_config.mutation(SystemComponentsConfig(enabled=True), state)
    assert tolerations_after(mutation) == [D, E]
    nodes = state.lister(system_components_config.view({})).store.source("")

    same_taints = {**NODE, "metadata": {"name": "n", "resourceVersion": "10"}, "status": {"phase": "x"}}
    nodes.apply(Present(same_taints))
    assert tolerations_after(mutation) == [D, E]
    assert needed.call_count == 1, "heartbeats of Nodes cost nothing"

    nodes.apply(Present(node("n", {"key": "new"}, resourceVersion="11")))
    assert tolerations_after(mutation) == [{"key": "new", "operator": "Exists"}]

    nodes.apply(Deleted(node("n", resourceVersion="12")))
    assert tolerations_after(mutation) == []


def test_pods_do_not_share_what_they_get() -> None:
    mutation = mutation_of(NODE)
    one, other = tolerations_after(mutation), tolerations_after(mutation)
    one[0]["key"] = "changed"
    assert other == [D, E] == tolerations_after(mutation)


tolerations = record(
    key=one_of("d", "e", ""),
    operator=one_of("", "Equal", "Exists"),
    value=one_of("", "x"),
    effect=one_of("", "NoSchedule", "NoExecute"),
    tolerationSeconds=st.integers(),
)
owners = record(apiVersion=one_of("apps/v1", "v1"), kind=one_of("DaemonSet", "ReplicaSet"), controller=st.booleans())
owned = record(ownerReferences=several(owners))
some_pods = pods(owned, nodeSelector=mapping(*SYSTEM), tolerations=several(tolerations), containers=words)
well_configured = mutation_of(
    NODE, node_selector=SYSTEM, pod_node_selector=SYSTEM, pod_tolerations=(Toleration(operator="Exists"),)
)

test_it_behaves_well = well_behaved(
    well_configured, some_pods, touches=["spec.tolerations", *(f"spec.nodeSelector.{name}" for name in SYSTEM)]
)
