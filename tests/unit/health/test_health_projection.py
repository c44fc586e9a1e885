"""What a cache has to hold of an object."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.health.checks.registry import rule_of
from agent.health.checks.rule import Check, Malformed, Rule
from agent.health.projection import projection
from kube.objects import Object


def test_what_is_not_read_is_dropped() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "a",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "labels": {"app": "x"},
            "managedFields": [{}],
            "annotations": {
                "resources.gardener.cloud/origin": "a/mr",
                "resources.gardener.cloud/skip-health-check": "true",
                "other": "x",
            },
        },
        "spec": {"replicas": 2, "template": {"spec": {}}, "selector": {"matchLabels": {"app": "x"}}},
        "status": {
            "observedGeneration": 2,
            "collisionCount": 1,
            "conditions": [
                {"type": "Other", "status": "True"},
                {"type": "Available", "status": "True", "lastUpdateTime": "2024-05-01T12:00:00Z"},
            ],
        },
    }
    before = deepcopy(obj)
    assert projection("apps", "Deployment", obj) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "a",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "annotations": {
                "resources.gardener.cloud/origin": "a/mr",
                "resources.gardener.cloud/skip-health-check": "true",
            },
        },
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"observedGeneration": 2, "conditions": [{"type": "Available", "status": "True"}]},
    }
    assert obj == before


def test_of_a_kind_without_a_rule_only_its_identity_is_kept() -> None:
    secret = {"metadata": {"name": "s", "labels": {"a": "b"}}, "data": {"password": "eA=="}}
    assert projection("", "Secret", secret) == {"metadata": {"name": "s"}}


def test_the_way_from_a_pod_to_its_deployment_is_kept() -> None:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}]
    for group, kind in (("", "Pod"), ("apps", "ReplicaSet")):
        kept = projection(group, kind, {"metadata": {"ownerReferences": owners}})
        assert kept["metadata"]["ownerReferences"] == owners


# --- whatever an API server may send

KINDS = [
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("", "ReplicationController"),
    ("batch", "Job"),
    ("", "Pod"),
    ("", "Service"),
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"),
    ("monitoring.coreos.com", "Prometheus"),
    ("monitoring.coreos.com", "Alertmanager"),
    ("cert.gardener.cloud", "Certificate"),
    ("cert.gardener.cloud", "Issuer"),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from(["", "True", "False", "Ready", "50%"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def objects(draw: st.DrawFn) -> tuple[Rule, Object]:
    """An object with any of the fields that its rule reads, most of the right type."""
    group, kind = draw(st.sampled_from(KINDS))
    rule = rule_of(group, kind)
    assert rule is not None
    obj: Object = {"metadata": {"name": "a", "generation": draw(st.integers(0, 2))}}
    for path in rule.reads:
        if path.startswith("metadata.") or draw(st.booleans()):
            continue
        *parents, last = path.split(".")
        parent = obj
        for name in parents:
            parent = parent.setdefault(name, {})
        parent[last] = draw(st.integers(0, 2) | json_values)
    if draw(st.booleans()) and rule.conditions:
        entry = st.fixed_dictionaries(
            {"type": st.sampled_from([*rule.conditions, "Other"])},
            optional={
                "status": st.sampled_from(["True", "False"]) | json_values,
                "observedGeneration": st.integers(0, 2) | json_values,
            },
        )
        obj.setdefault("status", {})["conditions"] = draw(st.lists(entry | json_values, max_size=4) | json_values)
    if draw(st.integers(0, 9)) == 0:
        obj[draw(st.sampled_from(("spec", "status")))] = draw(json_values)
    return rule, obj


def outcome(check: Check, obj: Object) -> tuple[str, Any]:
    try:
        return "result", check(obj)
    except Malformed as malformed:
        return "malformed", str(malformed)


@given(objects())
def test_every_check_comes_to_the_same_result_with_the_projection(drawn: tuple[Rule, Object]) -> None:
    rule, obj = drawn
    small = projection(rule.group, rule.kind, obj)
    for check in filter(None, (rule.health, rule.progress)):
        assert outcome(check, small) == outcome(check, obj)
