"""The ResourceQuota in the namespace of a Project."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.project.lifecycle.quota import change_of, configured, limits_only, new_quota
from config.controller_manager.controllers import QuotaConfiguration
from config.shared import LabelSelector, LabelSelectorRequirement
from kube.objects import Object

OWNER = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Project",
    "name": "dev",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}
PROJECT: Object = {"metadata": {"name": "dev", "uid": "u1"}, "spec": {"namespace": "garden-dev"}}


def config(hard: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


FIRST = QuotaConfiguration(
    config=config({"count/configmaps": "50"}), project_selector=LabelSelector(match_labels={"quota": "conf"})
)
SECOND = QuotaConfiguration(
    config=config({"count/configmaps": "5"}),
    project_selector=LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="quota", operator="In", values=("two", "conf")),)
    ),
)


@pytest.mark.parametrize(
    ("labels", "expected"), [({"quota": "conf"}, FIRST), ({"quota": "two"}, SECOND), ({"quota": "x"}, None), ({}, None)]
)
def test_the_first_configuration_counts_whose_selector_matches(
    labels: dict[str, str], expected: QuotaConfiguration | None
) -> None:
    found = configured((FIRST, SECOND), {"metadata": {"labels": labels}})
    assert found == (None if expected is None else expected.config)


def test_an_empty_selector_matches_all_projects() -> None:
    assert configured((QuotaConfiguration(config=FIRST.config),), PROJECT) == FIRST.config


def test_a_new_quota_is_as_configured() -> None:
    made = new_quota(config({"pods": "3"}, labels={"from": "config"}, annotations={"note": "n"}), PROJECT, "garden-dev")
    assert made["metadata"] == {
        "name": "gardener",
        "namespace": "garden-dev",
        "labels": {"from": "config"},
        "annotations": {"note": "n"},
        "ownerReferences": [OWNER],
    }
    assert made["spec"] == {"hard": {"pods": "3"}}


def test_limits_that_are_there_stay_others_come_and_go() -> None:
    present = {
        "metadata": {"name": "gardener", "labels": {"from": "me", "own": "1"}},
        "spec": {"hard": {"count/configmaps": "7", "count/pods": "3"}},
    }
    wanted = config({"count/configmaps": "50", "count/secrets": "60"}, labels={"from": "config"})
    assert change_of(present, wanted, PROJECT) == {
        "metadata": {"labels": {"from": "config"}, "ownerReferences": [OWNER]},
        "spec": {"hard": {"count/secrets": "60", "count/pods": None}},
    }


_HARD = st.dictionaries(st.sampled_from(["pods", "secrets", "services", "cpu"]), st.sampled_from(["1", "2", "10Gi"]))


@given(_HARD, _HARD)
def test_what_was_changed_needs_no_other_change(existing: dict[str, str], wanted: dict[str, str]) -> None:
    present: Object = {"metadata": {"ownerReferences": [OWNER]}, "spec": {"hard": existing}}
    change = change_of(present, config(wanted), PROJECT).get("spec", {}).get("hard", {})
    after = {name: value for name, value in {**existing, **change}.items() if value is not None}
    assert after.keys() == wanted.keys()
    assert all(after[name] == existing.get(name, wanted[name]) for name in after)
    assert change_of({**present, "spec": {"hard": after}}, config(wanted), PROJECT) == {}


def test_what_is_used_is_not_kept_in_memory() -> None:
    quota = {
        "metadata": {"name": "gardener", "namespace": "n", "resourceVersion": "3", "managedFields": [], "labels": {}},
        "spec": {"hard": {"pods": "3"}, "scopes": ["Terminating"]},
        "status": {"used": {"pods": "2"}},
    }
    assert limits_only(quota) == {
        "metadata": {"name": "gardener", "namespace": "n", "labels": {}},
        "spec": {"hard": {"pods": "3"}},
    }
