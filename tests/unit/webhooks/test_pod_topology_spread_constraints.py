from typing import Any

import pytest

from config.resource_manager.webhooks import Webhook
from kit.webhooks.mutating import NO_STATE, mapping, mutated, one_of, pods, record, several, well_behaved, words
from webhooks.handlers import pod_topology_spread_constraints
from webhooks.handlers.pod_topology_spread_constraints import HASH

mutation = pod_topology_spread_constraints.mutation(Webhook(enabled=True), NO_STATE)
BY_HASH = {"matchLabels": {HASH: "h1"}}
TOUCHES = [f"spec.topologySpreadConstraints[].{field}" for field in ("labelSelector.matchLabels", "matchLabelKeys")]


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


def expression(operator: str, **more: Any) -> Any:
    return {"matchExpressions": [{"key": HASH, "operator": operator, **more}]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, BY_HASH, id="null selector"),
        pytest.param({"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "a", HASH: "h1"}}, id="other labels stay"),
        pytest.param(expression("NotIn"), expression("NotIn") | BY_HASH, id="NotIn is no choice"),
        pytest.param(expression("DoesNotExist"), expression("DoesNotExist") | BY_HASH, id="DoesNotExist is no choice"),
    ],
)
def test_a_selector_gets_the_hash(before: Any, after: Any) -> None:
    assert mutated(mutation, pod({"labelSelector": before})) == pod({"labelSelector": after})


@pytest.mark.parametrize(
    ("keys", "after"),
    [
        pytest.param(["x", HASH, "y", HASH], {"matchLabelKeys": ["x", "y"]}, id="the key is not named twice"),
        pytest.param([HASH], {}, id="no empty list of keys"),
        pytest.param(["x"], {"matchLabelKeys": ["x"]}, id="other keys stay"),
    ],
)
def test_the_hash_is_no_key_any_more(keys: list[str], after: Any) -> None:
    assert mutated(mutation, pod({"matchLabelKeys": keys})) == pod({"labelSelector": BY_HASH, **after})


@pytest.mark.parametrize(
    "unchanged",
    [
        pytest.param(pod({"topologyKey": "z"}, labels={}), id="no hash"),
        pytest.param(pod({"topologyKey": "z"}, labels={"app": "a"}), id="other labels"),
        pytest.param(pod(), id="no constraints"),
        pytest.param({"metadata": {"labels": {HASH: "h1"}}}, id="no spec"),
        pytest.param(pod({"labelSelector": {"matchLabels": {HASH: ""}}, "matchLabelKeys": [HASH]}), id="by label"),
        pytest.param(pod({"labelSelector": expression("In", values=["x"])}), id="selected by expression"),
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

test_it_behaves_well = well_behaved(mutation, some_pods, touches=TOUCHES)
