from typing import Any

import pytest
from hypothesis import given

from config.resource_manager.webhooks import Webhook
from kit.webhooks.mutating import (
    NO_STATE,
    behaves_well,
    damaged,
    mapping,
    mutated,
    one_of,
    patiently,
    pods,
    record,
    several,
    words,
)
from webhooks.handlers import pod_topology_spread_constraints
from webhooks.handlers.pod_topology_spread_constraints import HASH

mutation = pod_topology_spread_constraints.mutation(Webhook(enabled=True), NO_STATE)


def pod(*constraints: Any, labels: Any = None) -> Any:
    spec = {"topologySpreadConstraints": list(constraints)} if constraints else {}
    return {"metadata": {"labels": {HASH: "h1"} if labels is None else labels}, "spec": spec}


def test_constraints_select_pods_of_the_same_rollout() -> None:
    exists = {"key": HASH, "operator": "Exists"}
    before = pod(
        {"topologyKey": "z"},
        {"topologyKey": "h", "labelSelector": {"matchExpressions": [exists]}},
        {"topologyKey": "k", "labelSelector": {"matchLabels": {HASH: "other"}}},
    )
    after = pod(
        {"topologyKey": "z", "labelSelector": {"matchLabels": {HASH: "h1"}}},
        {"topologyKey": "h", "labelSelector": {"matchExpressions": [exists], "matchLabels": {HASH: "h1"}}},
        {"topologyKey": "k", "labelSelector": {"matchLabels": {HASH: "other"}}},
    )
    assert mutated(mutation, before) == after


SELECTING, BY_HASH = {"matchLabels": {"app": "a", HASH: "h1"}}, {"matchLabels": {HASH: "h1"}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"labelSelector": None}, {"labelSelector": BY_HASH}, id="null selector"),
        pytest.param(
            {"labelSelector": {"matchLabels": {"app": "a"}}}, {"labelSelector": SELECTING}, id="other labels stay"
        ),
        *(
            pytest.param(
                {"labelSelector": expression},
                {"labelSelector": {**expression, **BY_HASH}},
                id=f"{operator} is no choice",
            )
            for operator in ("NotIn", "DoesNotExist")
            for expression in ({"matchExpressions": [{"key": HASH, "operator": operator}]},)
        ),
        *(
            pytest.param(
                {"labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": given},
                {"labelSelector": SELECTING, **({"matchLabelKeys": kept} if kept else {})},
                id=name,
            )
            for name, given, kept in (
                ("the key is not named twice", ["x", HASH, "y", HASH], ["x", "y"]),
                ("no empty list of keys", [HASH], []),
                ("other keys stay", ["x"], ["x"]),
            )
        ),
    ],
)
def test_a_constraint_gets_the_hash(before: Any, after: Any) -> None:
    assert mutated(mutation, pod(before)) == pod(after)


@pytest.mark.parametrize(
    "unchanged",
    [
        pytest.param(pod({"topologyKey": "z"}, labels={}), id="no hash"),
        pytest.param(pod({"topologyKey": "z"}, labels={"app": "a"}), id="other labels"),
        pytest.param(pod(), id="no constraints"),
        pytest.param({"metadata": {"labels": {HASH: "h1"}}}, id="no spec"),
        pytest.param(
            pod({"labelSelector": {"matchLabels": {HASH: ""}}, "matchLabelKeys": [HASH]}), id="selected by label"
        ),
        pytest.param(
            pod({"labelSelector": {"matchExpressions": [{"key": HASH, "operator": "In", "values": ["x"]}]}}),
            id="selected by expression",
        ),
    ],
)
def test_pods_are_left_alone_if(unchanged: Any) -> None:
    assert mutated(mutation, unchanged) == unchanged


def test_an_empty_hash_is_one() -> None:
    changed = mutated(mutation, pod({"topologyKey": "z"}, labels={HASH: ""}))
    assert changed == pod({"topologyKey": "z", "labelSelector": {"matchLabels": {HASH: ""}}}, labels={HASH: ""})


selectors = record(
    matchLabels=mapping(HASH),
    matchExpressions=several(record(key=one_of(HASH, "app"), operator=one_of("In", "Exists", "NotIn"))),
)
constraints = several(record(topologyKey=words, labelSelector=selectors, matchLabelKeys=several(one_of(HASH, "app"))))
some_pods = pods(record(labels=mapping(HASH)), topologySpreadConstraints=constraints)


@patiently
@given(some_pods | damaged(some_pods))
def test_it_behaves_well(obj: Any) -> None:
    constraint = "spec.topologySpreadConstraints[]"
    touches = [f"{constraint}.labelSelector.matchLabels", f"{constraint}.matchLabelKeys"]
    behaves_well(lambda pod: mutated(mutation, pod), obj, touches=touches)
