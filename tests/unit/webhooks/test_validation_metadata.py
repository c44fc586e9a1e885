"""The metadata of extension resources, when they are created and when they change."""

from typing import Any

import pytest

from kit.webhooks.validating import IMMUTABLE, below, errors, fields, invalid, undecodable, valid
from kube.objects import Object

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LONG, GRACE = "a" * 254, "deletionGracePeriodSeconds"
LABEL = "a valid label must be an empty string or consist of"
BOTH = ["orphan", "foregroundDeletion"]
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
NO_VERSION = {**OWNER, "apiVersion": "a/"}
MIDNIGHT = "2026-01-01T00:00:00Z"


def created(kind: str = "Extension", **meta: Any) -> list[str]:
    """Errors below `metadata.`."""
    return below("metadata.", errors(kind, valid(kind, meta=meta)))


def updated(old: Object, new: Object) -> list[str]:
    return below("metadata.", errors("Extension", valid("Extension", meta=new), valid("Extension", meta=old)))


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"name": "a.b-c"}, []),
        ({"name": "A"}, [invalid("name", "A", SUBDOMAIN)]),
        ({"name": LONG}, [invalid("name", LONG, "must be no more than 253 characters")]),
        ({"name": ""}, ["name: Required value: name or generateName is required"]),
        ({"name": "", "generateName": "a-"}, ["name: Required value: name or generateName is required"]),
        ({"generateName": "a-"}, []),
        ({"generateName": "-"}, [invalid("generateName", "-", SUBDOMAIN)]),
        ({"generateName": "Ab-"}, [invalid("generateName", "Ab-", SUBDOMAIN)]),
        ({"namespace": ""}, ["namespace: Required value"]),
        ({"namespace": "a.b"}, [invalid("namespace", "a.b", "must not contain dots")]),
        ({"generation": 1}, []),
        ({"generation": -1}, [invalid("generation", -1, "must be greater than or equal to 0")]),
    ],
)
def test_names(meta: Object, found: list[str]) -> None:
    assert created(**meta) == found


@pytest.mark.parametrize("kind", ["BackupBucket", "BackupEntry"])
def test_backups_have_no_namespace(kind: str) -> None:
    assert created(kind, namespace="n") == ["namespace: Forbidden: not allowed on this type"]


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"labels": {"a/b": "c", "x": ""}}, []),
        ({"labels": {"-": "c"}}, [invalid("labels", "-", "name part")]),
        ({"labels": {"a": "-"}}, [invalid("labels", "-", LABEL)]),
        ({"annotations": {"A.b/C": "any thing"}}, []),
        ({"annotations": {"a b": ""}}, [invalid("annotations", "a b", "name part")]),
        ({"annotations": {"A/B/C": ""}}, [invalid("annotations", "A/B/C", "a qualified name")]),
        ({"annotations": {"a": "x" * (2**18 - 1)}}, []),
        ({"annotations": {"a": "x" * 2**18}}, ["annotations: Too long: may not be more than 262144 bytes"]),
        ({"annotations": {"a": "é" * 2**17}}, ["annotations: Too long: may not be more than 262144 bytes"]),
        ({"finalizers": ["f", "a.b/c"]}, []),
        ({"finalizers": ["-"]}, [invalid("finalizers", "-", "name part")]),
        ({"finalizers": ["orphan"]}, []),
        ({"finalizers": BOTH}, [invalid("finalizers", BOTH, f"finalizer {' and '.join(BOTH)} cannot be both set")]),
    ],
)
def test_labels_annotations_and_finalizers(meta: Object, found: list[str]) -> None:
    assert [error.split(" must consist of alpha")[0].split(" alphanumeric")[0] for error in created(**meta)] == found


@pytest.mark.parametrize(
    ("owners", "found"),
    [
        ([OWNER], []),
        ([{**OWNER, "controller": True}, OWNER], []),
        ([OWNER, NO_VERSION], [invalid("ownerReferences[1].apiVersion", "a/", "version must not be empty")]),
        (
            [{}],
            [
                invalid("ownerReferences[0].apiVersion", "", "version must not be empty"),
                *(invalid(f"ownerReferences[0].{field}", "", "must not be empty") for field in ("kind", "name", "uid")),
            ],
        ),
    ],
)
def test_owners(owners: list[Object], found: list[str]) -> None:
    assert created(ownerReferences=owners) == found


def test_there_is_one_controller_at_most() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "controller": True, "name": "q"}]
    (error,) = created(ownerReferences=owners)
    assert error.startswith('ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"Pod","name":"p"')
    assert error.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q'
    )


def test_an_event_owns_nothing() -> None:
    (error,) = created(ownerReferences=[{**OWNER, "kind": "Event"}])
    assert error.startswith("ownerReferences[0]: Invalid value: {")
    assert error.endswith("/v1, Kind=Event is disallowed from being an owner")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({}, {"resourceVersion": ""}, [invalid("resourceVersion", "", "must be specified for an update")]),
        ({"resourceVersion": "1"}, {"resourceVersion": "2"}, []),
        ({"generation": 2}, {"generation": 1}, [invalid("generation", 1, "must not be decremented")]),
        ({"generation": 2}, {"generation": 3}, []),
        ({"name": "x"}, {"name": "y"}, [invalid("name", "y", IMMUTABLE)]),
        ({"namespace": "n"}, {"namespace": "m"}, [invalid("namespace", "m", IMMUTABLE)]),
        ({"uid": "u"}, {"uid": "v"}, [invalid("uid", "v", IMMUTABLE)]),
        (
            {"creationTimestamp": MIDNIGHT},
            {"creationTimestamp": "2026-01-01T01:00:01+01:00"},
            [invalid("creationTimestamp", "2026-01-01T00:00:01Z", IMMUTABLE)],
        ),
        ({"creationTimestamp": MIDNIGHT}, {"creationTimestamp": "2026-01-01T01:00:00+01:00"}, []),
        ({"deletionTimestamp": MIDNIGHT}, {}, [invalid("deletionTimestamp", None, IMMUTABLE)]),
        ({GRACE: 0}, {GRACE: 1}, [invalid(GRACE, 1, IMMUTABLE)]),
        ({GRACE: 0}, {}, [invalid(GRACE, None, IMMUTABLE)]),
        ({"labels": {"a": "b"}}, {}, []),
    ],
)
def test_updates(old: Object, new: Object, found: list[str]) -> None:
    assert updated(old, new) == found


def test_finalizers_are_not_added_while_an_object_is_being_deleted() -> None:
    deleting = {"deletionTimestamp": MIDNIGHT}
    old, new = {**deleting, "finalizers": ["f"]}, {**deleting, "finalizers": ["f", "b", "a"]}
    detail = "no new finalizers can be added if the object is being deleted, found new finalizers"
    assert updated(old, new) == [f'finalizers: Forbidden: {detail} []string{{"a", "b"}}']
    assert updated(old, {**deleting, "finalizers": []}) == []
    assert updated({"finalizers": ["f"]}, {"finalizers": ["f", "a"]}) == []


def test_what_is_wrong_with_labels_annotations_and_owners_is_found_twice_on_update() -> None:
    meta = {"labels": {"a": "-"}, "annotations": {"-": ""}, "ownerReferences": [{**OWNER, "uid": ""}]}
    assert fields(updated({}, meta)) == ["labels", "annotations", "ownerReferences[0].uid"] * 2


@pytest.mark.parametrize("time", ["", "yesterday", "2026-01-01", "2026-01-01T00:00:00", 1])
def test_times_that_are_none_cannot_be_decoded(time: Any) -> None:
    undecoded = undecodable("Extension", valid("Extension", meta={"deletionTimestamp": time}))
    assert "metadata.deletionTimestamp" in undecoded
