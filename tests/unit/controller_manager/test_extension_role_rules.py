"""Which ServiceAccounts a ClusterRole is for, and its ClusterRoleBinding."""

import json

import pytest

from agent.controller_manager.controller_registration.extension_cluster_role import (
    Role,
    account_labels,
    binding_of,
    controlled,
    has_other_role,
    patch_for,
)
from kube.objects import Key, Object

SELECTOR = "authorization.gardener.cloud/extensions-serviceaccount-selector"
FAILED = "failed computing subjects for ClusterRoleBinding: failed"


def role(selector: object = None, *, written: str | None = None) -> Role:
    text = json.dumps(selector) if written is None else written
    return Role.of({"metadata": {"name": "r", "uid": "1", "annotations": {SELECTOR: text}}})


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ({"matchLabels": {"a": "b"}}, {"a": "b"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        ({}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {"a": "b"}, False),
    ],
)
def test_selection(selector: Object, labels: dict[str, str], expected: bool) -> None:
    assert role(selector).problem == ""
    assert role(selector).selects(labels) is expected


@pytest.mark.parametrize(
    ("written", "reported"),
    [
        ("", f"{FAILED} parsing label selector: no service account selector annotations present"),
        ("{", f"{FAILED} unmarshalling extensions service account selector {{: "),
        ("[]", f"{FAILED} unmarshalling extensions service account selector []: it is not a valid LabelSelector"),
        (
            '{"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Like"}]}',
            f"{FAILED} unmarshalling extensions service account selector ",
        ),
    ],
)
def test_a_selector_that_can_not_be_understood_selects_nothing(written: str, reported: str) -> None:
    assert role(written=written).problem.startswith(reported)
    assert not role(written=written).selects({"a": "b"})


def test_only_namespaces_of_seeds_count() -> None:
    def labels_in(namespace: str) -> dict[str, str] | None:
        return account_labels({"metadata": {"name": "a", "namespace": namespace, "labels": {"x": "y"}}})

    assert labels_in("seed-a") == {"x": "y"}
    assert labels_in("garden") is labels_in("my-seed-a") is None


def test_a_binding_is_patched_only_where_it_differs() -> None:
    accounts = [Key("seed-b", "a"), Key("seed-a", "b")]
    wanted = binding_of(role({}), accounts)
    assert [each["namespace"] for each in wanted["subjects"]] == ["seed-a", "seed-b"]
    stored = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": "5", "labels": {"mine": "1"}}}
    assert controlled({"metadata": {"name": "other"}}) is None
    known = controlled(stored)
    assert known is not None
    assert patch_for(known, wanted) is None
    assert not has_other_role(known, wanted)
    assert patch_for({**known, "subjects": []}, wanted) == {
        "metadata": {"resourceVersion": "5", "ownerReferences": wanted["metadata"]["ownerReferences"]},
        "subjects": wanted["subjects"],
    }
    assert patch_for({**stored, "metadata": {"resourceVersion": "5"}}, wanted) is not None
    assert has_other_role({**known, "roleRef": {**wanted["roleRef"], "name": "x"}}, wanted)
