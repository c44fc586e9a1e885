"""The metadata of extension resources, when they are created and when they change."""

from typing import Any

import pytest

from kit.webhooks.validating import IMMUTABLE, errors, undecodable, valid
from kube.objects import Object

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LONG, GRACE = "a" * 254, "deletionGracePeriodSeconds"
LABEL = "a valid label must be an empty string or consist of"
BOTH = "finalizer orphan and foregroundDeletion cannot be both set"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


def created(kind: str = "Extension", **meta: Any) -> list[str]:
    return errors(kind, valid(kind, meta=meta))


def updated(old: Object, new: Object) -> list[str]:
    return errors("Extension", valid("Extension", meta=new), valid("Extension", meta=old))


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"name": "a.b-c"}, []),
        ({"name": "A"}, [f'metadata.name: Invalid value: "A": {SUBDOMAIN}']),
        ({"name": LONG}, [f'metadata.name: Invalid value: "{LONG}": must be no more than 253 characters']),
        ({"name": ""}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "", "generateName": "a-"}, ["metadata.name: Required value: name or generateName is required"]),
        ({"generateName": "a-"}, []),
        ({"generateName": "-"}, [f'metadata.generateName: Invalid value: "-": {SUBDOMAIN}']),
        ({"generateName": "Ab-"}, [f'metadata.generateName: Invalid value: "Ab-": {SUBDOMAIN}']),
        ({"namespace": ""}, ["metadata.namespace: Required value"]),
        ({"namespace": "a.b"}, ['metadata.namespace: Invalid value: "a.b": must not contain dots']),
        ({"generation": 1}, []),
        ({"generation": -1}, ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]),
    ],
)
def test_names(meta: Object, found: list[str]) -> None:
    assert created(**meta) == found


@pytest.mark.parametrize("kind", ["BackupBucket", "BackupEntry"])
def test_backups_have_no_namespace(kind: str) -> None:
    assert created(kind, namespace="n") == ["metadata.namespace: Forbidden: not allowed on this type"]


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"labels": {"a/b": "c", "x": ""}}, []),
        ({"labels": {"-": "c"}}, ['metadata.labels: Invalid value: "-": name part']),
        ({"labels": {"a": "-"}}, [f'metadata.labels: Invalid value: "-": {LABEL}']),
        ({"annotations": {"A.b/C": "any thing"}}, []),
        ({"annotations": {"a b": ""}}, ['metadata.annotations: Invalid value: "a b": name part']),
        ({"annotations": {"A/B/C": ""}}, ['metadata.annotations: Invalid value: "A/B/C": a qualified name']),
        ({"annotations": {"a": "x" * (2**18 - 1)}}, []),
        ({"annotations": {"a": "x" * 2**18}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
        ({"annotations": {"a": "é" * 2**17}}, ["metadata.annotations: Too long: may not be more than 262144 bytes"]),
        ({"finalizers": ["f", "a.b/c"]}, []),
        ({"finalizers": ["-"]}, ['metadata.finalizers: Invalid value: "-": name part']),
        ({"finalizers": ["orphan"]}, []),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            [f'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: {BOTH}'],
        ),
    ],
)
def test_labels_annotations_and_finalizers(meta: Object, found: list[str]) -> None:
    assert [error.split(" must consist of alpha")[0].split(" alphanumeric")[0] for error in created(**meta)] == found


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        ([OWNER], []),
        ([{**OWNER, "controller": True}, OWNER], []),
        (
            [OWNER, {**OWNER, "apiVersion": "a/"}],
            ['metadata.ownerReferences[1].apiVersion: Invalid value: "a/": version must not be empty'],
        ),
        (
            [{}],
            [
                f'metadata.ownerReferences[0].{field}: Invalid value: "": {what}must not be empty'
                for field, what in (("apiVersion", "version "), ("kind", ""), ("name", ""), ("uid", ""))
            ],
        ),
    ],
)
def test_owners(owners: list[Object], found: list[str]) -> None:
    assert created(ownerReferences=owners) == found


def test_there_is_one_controller_at_most() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "controller": True, "name": "q"}]
    (error,) = created(ownerReferences=owners)
    assert error.startswith('metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p"')
    assert error.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q'
    )


def test_an_event_owns_nothing() -> None:
    (error,) = created(ownerReferences=[{**OWNER, "kind": "Event"}])
    assert error.startswith("metadata.ownerReferences[0]: Invalid value: {")
    assert error.endswith("/v1, Kind=Event is disallowed from being an owner")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({}, {"resourceVersion": ""}, ['resourceVersion: Invalid value: "": must be specified for an update']),
        ({"resourceVersion": "1"}, {"resourceVersion": "2"}, []),
        ({"generation": 2}, {"generation": 1}, ["generation: Invalid value: 1: must not be decremented"]),
        ({"generation": 2}, {"generation": 3}, []),
        ({"name": "x"}, {"name": "y"}, [f'name: Invalid value: "y": {IMMUTABLE}']),
        ({"namespace": "n"}, {"namespace": "m"}, [f'namespace: Invalid value: "m": {IMMUTABLE}']),
        ({"uid": "u"}, {"uid": "v"}, [f'uid: Invalid value: "v": {IMMUTABLE}']),
        (
            {"creationTimestamp": "2026-01-01T00:00:00Z"},
            {"creationTimestamp": "2026-01-01T01:00:01+01:00"},
            [f'creationTimestamp: Invalid value: "2026-01-01T00:00:01Z": {IMMUTABLE}'],
        ),
        ({"creationTimestamp": "2026-01-01T00:00:00Z"}, {"creationTimestamp": "2026-01-01T01:00:00+01:00"}, []),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, {}, [f"deletionTimestamp: Invalid value: null: {IMMUTABLE}"]),
        ({GRACE: 0}, {GRACE: 1}, [f"{GRACE}: Invalid value: 1: {IMMUTABLE}"]),
        ({GRACE: 0}, {}, [f"{GRACE}: Invalid value: null: {IMMUTABLE}"]),
        ({"labels": {"a": "b"}}, {}, []),
    ],
)
def test_updates(old: Object, new: Object, found: list[str]) -> None:
    assert updated(old, new) == [f"metadata.{error}" for error in found]


def test_finalizers_are_not_added_while_an_object_is_being_deleted() -> None:
    deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    old, new = {**deleting, "finalizers": ["f"]}, {**deleting, "finalizers": ["f", "b", "a"]}
    detail = "no new finalizers can be added if the object is being deleted, found new finalizers"
    assert updated(old, new) == [f'metadata.finalizers: Forbidden: {detail} []string{{"a", "b"}}']
    assert updated(old, {**deleting, "finalizers": []}) == []
    assert updated({"finalizers": ["f"]}, {"finalizers": ["f", "a"]}) == []


def test_what_is_wrong_with_labels_annotations_and_owners_is_found_twice_on_update() -> None:
    meta = {"labels": {"a": "-"}, "annotations": {"-": ""}, "ownerReferences": [{**OWNER, "uid": ""}]}
    fields = ["metadata.labels", "metadata.annotations", "metadata.ownerReferences[0].uid"]
    assert [error.partition(":")[0] for error in updated({}, meta)] == fields * 2


@pytest.mark.parametrize("time", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", 1])
def test_times_that_are_none_cannot_be_decoded(time: Any) -> None:
    extension = valid("Extension", meta={"deletionTimestamp": time})
    assert "metadata.deletionTimestamp" in undecodable("Extension", extension)
