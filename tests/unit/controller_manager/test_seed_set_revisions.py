"""Changed templates of a ManagedSeedSet: how they are kept, and how they reach what was made from former ones."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.managed_seed_set.rules.history import (
    History,
    equal,
    new_revision,
    next_number,
    outlived,
    revision_hash,
    rollout_of,
)
from agent.controller_manager.managed_seed_set.rules.objects import managed_seed_of, merged, shoot_of, updated
from agent.controller_manager.managed_seed_set.rules.status import conditions_after, of_revisions
from agent.controller_manager.managed_seed_set.rules.steps import Decision, Idle, NoneDeletable, SetObservation, decide
from gardener.garden.managed_seed_sets import Replica, owned, templates_in, templates_of
from kit.seed_sets import managed_seed, ready, replica_shoot, seed
from kube.objects import Object

SET: Object = {
    "metadata": {"name": "test", "namespace": "garden", "uid": "u", "generation": 3},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"set": "test"}},
        "template": {
            "metadata": {"labels": {"set": "test"}},
            "spec": {
                "gardenlet": {
                    "config": {"seedConfig": {"spec": {"ingress": {"domain": "i.replica-name.replica-name"}}}}
                }
            },
        },
        "shootTemplate": {
            "metadata": {"labels": {"set": "test"}, "annotations": {"a": "b"}},
            "spec": {"dns": {"domain": "replica-name.example.com"}, "region": "r"},
        },
        "updateStrategy": {"rollingUpdate": {"partition": 1}},
    },
}


# --- what is made from templates


def test_objects_of_a_replica_have_its_name_in_their_domains() -> None:
    before = copy.deepcopy(SET)
    made = shoot_of(SET, "test-7", templates_of(SET), "test-x")
    assert made["spec"] == {"dns": {"domain": "test-7.example.com"}, "region": "r"}
    assert made["metadata"]["labels"] == {"set": "test", "controller-revision-hash": "test-x"}
    assert made["metadata"]["annotations"] == {"a": "b"}
    owner = {"apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "ManagedSeedSet", "name": "test"}
    assert made["metadata"]["ownerReferences"] == [
        {**owner, "uid": "u", "controller": True, "blockOwnerDeletion": True}
    ]
    seed_made = managed_seed_of(SET, "test-7", templates_of(SET))
    assert seed_made["spec"]["shoot"] == {"name": "test-7"}
    domain = seed_made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]["ingress"]["domain"]
    assert domain == "i.test-7.test-7"
    assert seed_made["metadata"]["labels"] == {"set": "test"}
    assert "annotations" not in seed_made["metadata"]
    assert before == SET


def test_a_seed_without_a_gardenlet_has_its_name_in_its_domain() -> None:
    seed = {"spec": {"ingress": {"domain": "i.replica-name.example.com"}}}
    made = managed_seed_of(SET, "test-7", {"template": {"spec": {"seedTemplate": seed}}})
    expected = {"spec": {"ingress": {"domain": "i.test-7.example.com"}}}
    assert made["spec"] == {"seedTemplate": expected, "shoot": {"name": "test-7"}}


def test_templates_without_domains_are_taken_as_they_are() -> None:
    plain = {"template": {"spec": {"gardenlet": {}}}, "shootTemplate": {"spec": {"region": "r"}}}
    assert shoot_of(SET, "test-0", plain)["spec"] == {"region": "r"}
    assert managed_seed_of(SET, "test-0", plain)["spec"] == {"gardenlet": {}, "shoot": {"name": "test-0"}}


# --- revisions


def test_the_hash_of_a_revision() -> None:
    assert revision_hash({}, None) == "598ccc4dcd"
    assert revision_hash({}, 0) != revision_hash({}, None) != revision_hash({}, 1)
    assert revision_hash({"a": 1, "b": "ä"}, None) == revision_hash({"b": "ä", "a": 1}, None)


def _kept(number: int, templates: Object, *, set_uid: str = "u") -> Object:
    made = new_revision(SET, templates, number=number, collisions=None)
    made["metadata"]["ownerReferences"][0]["uid"] = set_uid
    return made


def test_former_templates_are_found_again() -> None:
    first, second, foreign = _kept(1, {"a": 1}), _kept(2, {"a": 2}), _kept(9, {"a": 3}, set_uid="other")
    known = owned(SET, [second, foreign, first])
    assert known == [first, second]
    assert equal(known, {"a": 1}) is first
    assert equal(known, {"a": 3}) is None
    assert next_number(known) == 3
    assert next_number([]) == 1
    assert templates_in(first) == {"a": 1}


def test_a_revision_is_labelled_as_the_set_selects_and_reports_why() -> None:
    caused = copy.deepcopy(SET)
    caused["metadata"]["annotations"] = {"kubernetes.io/change-cause": "because", "other": "x"}
    made = new_revision(caused, templates_of(caused), number=4, collisions=None)
    found = revision_hash(templates_of(caused), None)
    assert made["metadata"]["name"] == f"test-{found}"
    assert made["metadata"]["labels"] == {"set": "test", "controller.kubernetes.io/hash": found}
    assert made["metadata"]["annotations"] == {"kubernetes.io/change-cause": "because"}
    assert made["revision"] == 4


@pytest.mark.parametrize(("limit", "expected"), [(0, [1, 2, 4]), (1, [1, 2]), (2, [1]), (3, []), (9, [])])
def test_of_the_past_the_oldest_go(limit: int, expected: list[int]) -> None:
    known = [_kept(number, {"a": number}) for number in range(1, 6)]
    live = {known[2]["metadata"]["name"], known[4]["metadata"]["name"]}
    assert [each["revision"] for each in outlived(known, live, limit=limit)] == expected


def _on(name: str, revision: str) -> Replica:
    return ready(name, revision=revision)


def test_a_roll_out_is_over_when_all_are_ready() -> None:
    history = History([], update="r2", current="r1")
    half = Replica(
        shoot=replica_shoot("b", revision="r2"), managed_seed=managed_seed("b", revision="r1"), seed=seed("b")
    )
    fields = of_revisions(history, [_on("a", "r1"), half, _on("c", "r2")])
    assert fields == {
        "currentRevision": "r1",
        "updateRevision": "r2",
        "currentReplicas": 1,
        "updatedReplicas": 1,
        "collisionCount": None,
    }
    over = of_revisions(history, [_on("a", "r2"), _on("b", "r2")])
    assert (over["currentRevision"], over["currentReplicas"], over["updatedReplicas"]) == ("r2", 2, 2)
    unready = Replica(shoot=replica_shoot("a", revision="r2"), managed_seed=managed_seed("a", revision="r2"))
    assert of_revisions(history, [unready])["currentRevision"] == "r1"
    assert of_revisions(history, [])["currentRevision"] == "r2"
    assert rollout_of(SET, history).partition == 1


# --- merging


@pytest.mark.parametrize(
    ("old", "new", "live", "expected"),
    [
        # What did not change is left alone, whatever it is by now.
        ({"a": 1}, {"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 3}),
        ({"a": 1}, {"a": 1}, {}, {}),
        ({"a": 1}, {"a": 2}, {"a": 7, "b": 3}, {"a": 2, "b": 3}),
        ({"a": 1}, {}, {"a": 7, "b": 3}, {"b": 3}),
        ({}, {"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {}, {"a": {"b": 2}}),
        ({"a": {"b": 1}}, {"a": 5}, {"a": {"b": 1, "c": 1}}, {"a": 5}),
        ({"a": [1]}, {"a": [2]}, {"a": [1, 3]}, {"a": [2]}),
        ({"a": [1]}, {"a": []}, {"a": [1, 3]}, {"a": []}),
        # Entries with names are known by them.
        (
            {"w": [{"name": "w", "max": 5}]},
            {"w": [{"name": "w", "max": 8}]},
            {"w": [{"name": "w", "max": 5, "image": {"version": "1.2"}}], "seedName": "x"},
            {"w": [{"name": "w", "max": 8, "image": {"version": "1.2"}}], "seedName": "x"},
        ),
        (
            {"w": [{"name": "a"}, {"name": "b"}]},
            {"w": [{"name": "b"}, {"name": "c", "x": 1}]},
            {"w": [{"name": "own"}, {"name": "b", "y": 2}, {"name": "a"}]},
            {"w": [{"name": "own"}, {"name": "b", "y": 2}, {"name": "c", "x": 1}]},
        ),
        (
            {"w": [{"name": "a"}]},
            {"w": [{"name": "a"}, {"name": "a"}]},
            {"w": []},
            {"w": [{"name": "a"}, {"name": "a"}]},
        ),
        ({"w": [{"name": "a"}]}, {"w": []}, {"w": [{"name": "a"}, {"name": "b"}]}, {"w": []}),
    ],
)
def test_what_changed_in_the_templates_changes(old: Any, new: Any, live: Any, expected: Any) -> None:
    before = copy.deepcopy((old, new, live))
    assert merged(old, new, live) == expected
    assert (old, new, live) == before


_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)
_SPECS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)


@given(_SPECS, _SPECS)
def test_what_was_not_changed_by_hand_becomes_as_the_new_templates_state(old: Object, new: Object) -> None:
    assert merged(old, new, old) == new


@given(_SPECS, _SPECS, _SPECS)
def test_a_second_time_changes_nothing(old: Object, new: Object, live: Object) -> None:
    once = merged(old, new, live)
    assert merged(old, new, once) == once
    assert merged(new, new, live) == live


def test_labels_and_annotations_are_merged_alike() -> None:
    live: Object = {
        "metadata": {"name": "n", "labels": {"a": "1", "own": "x"}, "annotations": {"gone": "1", "own": "y"}},
        "spec": {"region": "r", "seedName": "s"},
        "status": {"kept": True},
    }
    old: Object = {"metadata": {"labels": {"a": "1"}, "annotations": {"gone": "1"}}, "spec": {"region": "r"}}
    new: Object = {"metadata": {"labels": {"a": "2"}}, "spec": {"region": "q"}}
    become = updated(live, old, new, own_labels={"controller-revision-hash": "h"})
    assert become == {
        "metadata": {
            "name": "n",
            "labels": {"a": "2", "own": "x", "controller-revision-hash": "h"},
            "annotations": {"own": "y"},
        },
        "spec": {"region": "q", "seedName": "s"},
        "status": {"kept": True},
    }
    unknown = updated(live, None, new, own_labels={})
    assert unknown["metadata"]["annotations"] == {"gone": "1", "own": "y"}
    assert unknown["spec"] == {"region": "q", "seedName": "s"}


# --- conditions

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def _reported(
    *replicas: Replica, target: int, used: frozenset[str] = frozenset(), refusal: str = ""
) -> list[list[str]]:
    observed = SetObservation(
        namespace="garden",
        name="test",
        replicas=replicas,
        target=target,
        pending=None,
        next_number=0,
        used_seeds=used,
        now=NOW,
        max_retries=0,
        pause=60.0,
    )
    decision: Decision = decide(observed)
    assert isinstance(decision, Idle | NoneDeletable) or decision.name
    conditions = conditions_after(SET, observed, decision, refusal=refusal)
    return [[each["status"], each["reason"], each["message"]] for each in conditions]


PROTECTED = {"seedmanagement.gardener.cloud/protect-from-deletion": "true"}


def test_the_conditions_report_how_it_goes() -> None:
    assert _reported(ready("test-0"), target=1) == [
        ["True", "AllReplicasReady", "All 1 replicas are ready."],
        ["False", "Idle", "No replica is pending."],
    ]
    assert _reported(ready("test-0"), target=2) == [
        ["False", "ReplicasNotReady", "1/2 replicas are ready."],
        ["True", "ShootReconciling", "replica test-1: ShootReconciling since 2030-01-01T12:00:00Z"],
    ]
    assert _reported(Replica(shoot=replica_shoot("test-0", "Create Failed")), target=1)[1] == [
        "False",
        "RetriesExhausted",
        "replica test-0: ShootReconcileFailed since 2030-01-01T12:00:00Z",
    ]
    both = (ready("test-0", annotations=PROTECTED), ready("test-1"))
    assert _reported(*both, target=0, used=frozenset({"test-1"}))[1] == [
        "False",
        "NoDeletableReplicas",
        "protected: [test-0]; in use: [test-1]",
    ]
    assert _reported(ready("test-0"), target=1, refusal="no")[1] == ["False", "UpdateRejected", "no"]
    assert _reported(target=1, refusal="no")[1] == ["False", "CreationRejected", "no"]
    assert _reported(Replica(shoot=replica_shoot("test-0")), target=0, refusal="no")[1] == [
        "False",
        "DeletionRejected",
        "no",
    ]
