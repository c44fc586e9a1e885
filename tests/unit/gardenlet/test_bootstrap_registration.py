"""The Seed as a gardenlet registers it, the Gardenlet that upgrades it, and operations that a predecessor left."""

import pytest

from agent.gardenlet.bootstrap.left_over_operations import is_left_over
from agent.gardenlet.bootstrap.rules.registration import (
    finalised_marker,
    new_seed,
    seed_patch,
    stays_away,
    why_again,
)
from agent.gardenlet.managed_seeds.self_upgrade.creation import decoded
from kube.objects import Object

SPEC: Object = {
    "provider": {"type": "local", "region": "local"},
    "networks": {"pods": "10.20.0.0/16", "services": "10.0.0.0/16"},
    "dns": {},
    "ingress": {"domain": "d", "controller": {"kind": "nginx"}},
}
ADMITTED = {"provider.extensions.gardener.cloud/local": "true"}
"""What the garden's admission adds, in the request that is recorded as that of the gardenlet."""


def configured(*, labels: Object | None = None, annotations: Object | None = None, **spec: object) -> Object:
    meta: Object = {"name": "local", "labels": labels or {}, "annotations": annotations or {}}
    return {"metadata": meta, "spec": {**SPEC, **spec}}


def registered(seed: Object, *, others: Object | None = None, annotations: Object | None = None) -> Object:
    """As the garden stores what a gardenlet has created. Args: others: labels that another client has given it."""
    made = new_seed(seed)
    own = {**made["metadata"]["labels"], **ADMITTED}
    fields: Object = {"f:metadata": {"f:labels": {f"f:{name}": {} for name in own}}}
    meta = {
        **made["metadata"],
        "labels": {**own, **(others or {})},
        "annotations": {**made["metadata"].get("annotations", {}), **(annotations or {})},
        "managedFields": [{"manager": "gardenlet", "operation": "Update", "fieldsV1": fields}],
    }
    return {**made, "metadata": meta}


def test_a_new_seed_is_as_it_is_configured() -> None:
    made = new_seed(configured(labels={"a": "1"}, annotations={"n": "x"}))
    assert made["metadata"] == {
        "name": "local",
        "labels": {"gardener.cloud/role": "seed", "a": "1"},
        "annotations": {"n": "x"},
    }
    assert made["spec"]["provider"] == SPEC["provider"]
    assert made["spec"]["settings"]["excessCapacityReservation"]["configs"], "defaults are filled in"


def test_a_configured_role_wins() -> None:
    labels = new_seed(configured(labels={"gardener.cloud/role": "mine"}))["metadata"]["labels"]
    assert labels == {"gardener.cloud/role": "mine"}


def test_a_seed_that_is_as_configured_is_not_written() -> None:
    seed = configured(labels={"a": "1"}, annotations={"n": "x"})
    assert seed_patch(registered(seed, others={"theirs": "x"}, annotations={"theirs": "x"}), seed) == {}


def test_labels_of_a_former_configuration_go_and_those_of_others_stay() -> None:
    live = registered(configured(labels={"old": "1"}, annotations={"old": "1"}), others={"theirs": "x"})
    wanted = configured(labels={"new": "1"}, annotations={"new": "1"}, taints=[{"key": "k"}])
    assert seed_patch(live, wanted) == {
        "metadata": {"labels": {"old": None, "new": "1"}, "annotations": {"new": "1"}},
        "spec": {"taints": [{"key": "k"}]},
    }


def test_what_is_not_configured_any_more_goes_from_the_spec() -> None:
    live = registered(configured(taints=[{"key": "k"}], volume={"minimumSize": "20Gi"}))
    assert seed_patch(live, configured()) == {"spec": {"taints": None, "volume": None}}


def test_a_seed_of_another_origin_is_taken_over() -> None:
    live = {"metadata": {"name": "local", "labels": {"theirs": "x"}}, "spec": {"provider": {"type": "other"}}}
    patch = seed_patch(live, configured())
    assert patch["metadata"] == {"labels": {"gardener.cloud/role": "seed"}}
    assert patch["spec"]["provider"] == {"type": "local", "region": "local"}


def test_a_seed_that_was_finalised_stays_away_until_its_configuration_changes() -> None:
    seed = configured()
    marker = finalised_marker({"metadata": {"name": "local", "uid": "u"}}, seed)
    assert marker["metadata"] == {"name": "gardenlet-seed-finalised", "namespace": "garden"}
    assert marker["data"]["uid"] == "u"
    assert stays_away(marker, seed)
    assert not stays_away(marker, configured(labels={"a": "1"}))
    assert not stays_away(marker, {**seed, "metadata": {"name": "other"}})
    assert not stays_away(None, seed)
    assert not stays_away({"data": "odd"}, seed)
    assert why_again(None) == "there is none"
    assert "changed" in why_again(marker)


GARDENLET = """
apiVersion: seedmanagement.gardener.cloud/v1alpha1
kind: Gardenlet
metadata: {name: local, labels: {l: x}}
spec: {deployment: {helm: {}}, fieldOfALaterRelease: 1}
"""


def test_the_object_for_upgrades_keeps_fields_of_later_releases() -> None:
    found = decoded(GARDENLET)
    assert found["metadata"] == {"name": "local", "namespace": "garden", "labels": {"l": "x"}}
    assert found["spec"] == {"deployment": {"helm": {}}, "fieldOfALaterRelease": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("kind: [nonsense", "line"),
        ("", "no Gardenlet"),
        ("text", "no Gardenlet"),
        (GARDENLET.replace("v1alpha1", "v9"), "no Gardenlet of seedmanagement.gardener.cloud/v1alpha1"),
        (GARDENLET.replace("name: local,", ""), "no name"),
    ],
)
def test_another_object_for_upgrades_is_an_error(content: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decoded(content)


@pytest.mark.parametrize(
    ("scheduled", "on", "state", "left_over"),
    [
        ("a", "a", "Processing", True),
        ("a", "", "Processing", True),
        ("b", "a", "Processing", True),
        ("a", "b", "Processing", False),
        ("b", "", "Processing", False),
        ("a", "a", "Error", False),
        ("a", "a", None, False),
    ],
)
def test_which_operations_are_left_over(scheduled: str, on: str, state: str | None, left_over: bool) -> None:
    status: Object = {"seedName": on} | ({"lastOperation": {"state": state}} if state else {})
    assert is_left_over({"spec": {"seedName": scheduled}, "status": status}, seed="a") is left_over
