"""Namespaces of Projects: which may be used, what is written on them, and what becomes of them in the end."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.project.lifecycle.namespace import (
    RELEASED,
    WAITING,
    namespace_of,
    new_namespace,
    problem,
    release,
    taking,
)
from kube.objects import Object

UID = "6f1d8d1e-0000-4000-8000-000000000001"
PROJECT: Object = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Project",
    "metadata": {"name": "dev", "uid": UID},
    "spec": {"namespace": "garden-dev"},
}
ROLE, NAME = "gardener.cloud/role", "project.gardener.cloud/name"
LABELS = {ROLE: "project", NAME: "dev"}
PRINTED = 'map[string]string{"gardener.cloud/role":"project", "project.gardener.cloud/name":"dev"}'
TAKEN = "namespace.gardener.cloud/project"
CREATED = "namespace.gardener.cloud/created-by-project-controller"
KEEP = "namespace.gardener.cloud/keep-after-project-deletion"
OWNER = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Project",
    "name": "dev",
    "uid": UID,
    "controller": True,
    "blockOwnerDeletion": True,
}
FOREIGN = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "other"}


def namespace(**metadata: Any) -> Object:
    return {"metadata": {"name": "garden-dev", "labels": LABELS, **metadata}}


def merged(namespace: Object, change: Object) -> Object:
    """The metadata after a merge patch."""
    meta = dict(namespace["metadata"])
    for field, value in change.items():
        present = meta.get(field)
        new = {**(present or {}), **value} if isinstance(value, dict) else value
        meta[field] = {k: v for k, v in new.items() if v is not None} if isinstance(new, dict) else new
    return {"metadata": {field: value for field, value in meta.items() if value}}


# --- names


def test_a_chosen_namespace_is_taken() -> None:
    assert namespace_of(PROJECT) == "garden-dev"


def test_a_namespace_that_was_not_chosen_is_named_after_the_project_and_its_uid() -> None:
    project = {"metadata": {"name": "dev", "uid": UID}, "spec": {}}
    # printf 6f1d8d1e-0000-4000-8000-000000000001 | sha256sum
    assert namespace_of(project) == "garden-dev-5f205"


# --- in use


def test_a_new_namespace_belongs_to_its_project() -> None:
    made = new_namespace(PROJECT)
    assert made["metadata"] == {
        "name": "garden-dev",
        "labels": LABELS,
        "annotations": {TAKEN: UID, CREATED: "true"},
        "ownerReferences": [OWNER],
    }
    assert not problem(made, PROJECT)
    assert taking(made, PROJECT) == {}


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ""),
        ({"labels": {**LABELS, "own": "1"}, "annotations": {TAKEN: UID}}, ""),
        ({"annotations": {TAKEN: "0000"}}, "namespace is already in-use by another project"),
        (
            {"labels": {ROLE: "project"}},
            f"namespace cannot be used as it needs the project labels {PRINTED}",
        ),
        ({"labels": {**LABELS, NAME: "other"}, "annotations": {TAKEN: "0000"}}, "namespace cannot be used as it needs"),
        ({"labels": None}, "namespace cannot be used as it needs the project labels"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, 'namespace "garden-dev" is being deleted'),
    ],
)
def test_a_namespace_that_is_not_meant_for_the_project_is_not_used(metadata: Object, expected: str) -> None:
    found = problem(namespace(**metadata), PROJECT)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("metadata", "annotations", "owners"),
    [
        ({}, {TAKEN: UID, KEEP: "true"}, None),
        ({"annotations": {"mine": "x"}}, {"mine": "x", TAKEN: UID, KEEP: "true"}, None),
        ({"annotations": {KEEP: "false"}}, {TAKEN: UID, KEEP: "false"}, [OWNER]),
        ({"annotations": {CREATED: "true"}}, {CREATED: "true", TAKEN: UID}, [OWNER]),
        ({"annotations": {CREATED: "true", KEEP: "true"}}, {CREATED: "true", KEEP: "true", TAKEN: UID}, None),
        ({"ownerReferences": [FOREIGN]}, {TAKEN: UID, KEEP: "true"}, [FOREIGN]),
        # As releases before wrote it.
        ({"annotations": {TAKEN: UID, KEEP: "true"}, "ownerReferences": [OWNER]}, {TAKEN: UID, KEEP: "true"}, None),
        ({"ownerReferences": [{**OWNER, "controller": False}, FOREIGN]}, {TAKEN: UID, KEEP: "true"}, [FOREIGN]),
        (
            {"annotations": {CREATED: "true"}, "ownerReferences": [{**OWNER, "controller": False}, FOREIGN]},
            {CREATED: "true", TAKEN: UID},
            [OWNER, FOREIGN],
        ),
    ],
)
def test_a_namespace_that_is_to_stay_is_taken_and_has_no_owner(
    metadata: Object, annotations: Object, owners: list[Object] | None
) -> None:
    before = namespace(**metadata)
    after = merged(before, taking(before, PROJECT))
    assert after["metadata"]["annotations"] == annotations
    assert after["metadata"].get("ownerReferences") == owners
    assert after["metadata"]["labels"] == LABELS
    assert taking(after, PROJECT) == {}


# --- in the end


def test_a_namespace_that_was_made_for_the_project_is_deleted() -> None:
    step = release(new_namespace(PROJECT), PROJECT)
    assert step.deletes
    assert not step.is_done
    assert not step.change


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {}},
        {"annotations": {CREATED: "true"}},
        {"annotations": {TAKEN: "0000"}},
        {"annotations": {TAKEN: "0000"}, "ownerReferences": [OWNER]},
        {"annotations": {TAKEN: "0000"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"annotations": {TAKEN: UID}, "labels": {}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
    ],
)
def test_what_the_project_never_took_or_lost_does_not_hold_it(metadata: Object) -> None:
    assert release(namespace(**metadata), PROJECT) is RELEASED


def test_a_namespace_that_is_gone_does_not_hold_the_project() -> None:
    assert release(None, PROJECT) is RELEASED


def test_a_namespace_in_deletion_is_waited_for() -> None:
    going = namespace(annotations={TAKEN: UID}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert release(going, PROJECT) is WAITING


@pytest.mark.parametrize("keep", ["true", "1", "T"])
def test_a_namespace_that_is_to_be_kept_is_left_as_it_was_before(keep: str) -> None:
    before = namespace(
        labels={**LABELS, "own": "1"},
        annotations={"mine": "x", TAKEN: UID, KEEP: keep, CREATED: "true"},
        ownerReferences=[FOREIGN, OWNER],
    )
    step = release(before, PROJECT)
    assert step.is_done
    assert not step.deletes
    assert merged(before, step.change)["metadata"] == {
        "name": "garden-dev",
        "labels": {"own": "1"},
        "annotations": {"mine": "x"},
        "ownerReferences": [FOREIGN],
    }


@pytest.mark.parametrize("keep", ["false", "", "no"])
def test_a_namespace_that_a_user_does_not_keep_goes_with_its_project(keep: str) -> None:
    change = taking(namespace(annotations={KEEP: keep}), PROJECT)
    assert KEEP not in change["annotations"]
    assert change["ownerReferences"]


@pytest.mark.parametrize("keep", ["false", "", "no"])
def test_any_other_value_does_not_keep_it(keep: str) -> None:
    assert release(namespace(annotations={TAKEN: UID, KEEP: keep}), PROJECT).deletes


@pytest.mark.parametrize("labels", [{}, {ROLE: "project"}, {NAME: "other", ROLE: "project"}])
def test_a_namespace_without_the_labels_stays_and_does_not_go_with_its_owner(labels: dict[str, str]) -> None:
    before = namespace(labels=labels, annotations={TAKEN: UID, CREATED: "true"}, ownerReferences=[OWNER])
    step = release(before, PROJECT)
    assert step.is_done
    after = merged(before, step.change)["metadata"]
    assert "ownerReferences" not in after
    assert "annotations" not in after
    assert after.get("labels", {}).get(NAME) == labels.get(NAME)


_VALUES = st.sampled_from([UID, "0000", "true", "false", None])
_METADATA = st.fixed_dictionaries(
    {
        "labels": st.dictionaries(st.sampled_from([ROLE, NAME]), st.sampled_from(["project", "dev", "other"])),
        "annotations": st.fixed_dictionaries({TAKEN: _VALUES, CREATED: _VALUES, KEEP: _VALUES}),
        "ownerReferences": st.lists(st.sampled_from([OWNER, FOREIGN]), unique_by=str),
        "deletionTimestamp": st.sampled_from([None, "2026-01-01T00:00:00Z"]),
    }
)


@given(_METADATA)
def test_whatever_is_deleted_carries_the_uid_and_the_labels_of_the_project(metadata: Object) -> None:
    given_annotations = {name: value for name, value in metadata["annotations"].items() if value}
    step = release(namespace(**{**metadata, "annotations": given_annotations}), PROJECT)
    if step.deletes:
        assert metadata["labels"] == LABELS
        assert given_annotations.get(TAKEN, UID) == UID
        assert TAKEN in given_annotations or OWNER in metadata["ownerReferences"]
        assert given_annotations.get(KEEP) != "true"


@given(_METADATA)
def test_a_namespace_is_given_up_in_one_step(metadata: Object) -> None:
    annotations = {name: value for name, value in metadata["annotations"].items() if value}
    before = namespace(**{**metadata, "annotations": annotations})
    step = release(before, PROJECT)
    if step.is_done:
        assert release(merged(before, step.change), PROJECT) == RELEASED
