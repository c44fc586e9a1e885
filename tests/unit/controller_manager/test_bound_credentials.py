"""Labels and finalizer of credentials follow from the bindings that there are, and from nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.common.rules.credentials import Bound, Credentials, changes_of_labels
from agent.controller_manager.credentials import needed_changes
from gardener.keys import CREDENTIALS_BINDING_REFERENCE, CREDENTIALS_FINALIZER, SECRET_BINDING_REFERENCE
from kube.objects import Object

BY_SECRET_BINDING, BY_CREDENTIALS_BINDING = SECRET_BINDING_REFERENCE, CREDENTIALS_BINDING_REFERENCE
LOCAL, OTHER = "provider.shoot.gardener.cloud/local", "provider.shoot.gardener.cloud/other"
FINALIZER = CREDENTIALS_FINALIZER


def bindings(secret: list[str] | None = None, credentials: list[str] | None = None) -> Bound[Object]:
    """Each with its provider types."""
    return {
        BY_SECRET_BINDING: [{"provider": {"type": each}} for each in secret or []],
        BY_CREDENTIALS_BINDING: [{"provider": {"type": each}} for each in credentials or []],
    }


def credentials(*labels: str, finalizers: list[str] | None = None, **metadata: Any) -> Credentials:
    return Credentials.of(
        {"metadata": {"labels": dict.fromkeys(labels, "true"), "finalizers": finalizers or [], **metadata}}
    )


def test_what_no_binding_refers_to_is_left_alone() -> None:
    for seen in (credentials(), credentials(LOCAL), credentials(finalizers=[FINALIZER]), credentials("a", "b")):
        assert needed_changes(seen, bindings()) == {}


@pytest.mark.parametrize(
    ("bound", "labels"),
    [
        (bindings(secret=["local"]), [BY_SECRET_BINDING, LOCAL]),
        (bindings(credentials=["local"]), [BY_CREDENTIALS_BINDING, LOCAL]),
        (bindings(secret=["local,other"]), [BY_SECRET_BINDING, LOCAL, OTHER]),
        (bindings(secret=["local"], credentials=["other"]), [BY_SECRET_BINDING, BY_CREDENTIALS_BINDING, LOCAL, OTHER]),
        (bindings(secret=["local", "local"]), [BY_SECRET_BINDING, LOCAL]),
    ],
)
def test_new_bindings_put_labels_and_the_finalizer_on_their_credentials(
    bound: Bound[Object], labels: list[str]
) -> None:
    expected: Object = {"labels": dict.fromkeys(labels, "true"), "finalizers": ["somebody/else", FINALIZER]}
    assert needed_changes(credentials(finalizers=["somebody/else"]), bound) == expected


def test_the_last_binding_takes_all_labels_and_the_finalizer_along() -> None:
    seen = credentials(BY_SECRET_BINDING, LOCAL, OTHER, finalizers=["somebody/else", FINALIZER])
    removed = {BY_SECRET_BINDING: None, LOCAL: None, OTHER: None}
    assert needed_changes(seen, bindings()) == {"labels": removed, "finalizers": ["somebody/else"]}
    seen = credentials(BY_CREDENTIALS_BINDING, finalizers=[FINALIZER])
    assert needed_changes(seen, bindings()) == {"labels": {BY_CREDENTIALS_BINDING: None}, "finalizers": None}


def test_what_the_other_kind_of_bindings_needs_stays() -> None:
    seen = credentials(BY_SECRET_BINDING, BY_CREDENTIALS_BINDING, LOCAL, OTHER, finalizers=[FINALIZER])
    changes = needed_changes(seen, bindings(credentials=["other"]))
    assert changes == {"labels": {BY_SECRET_BINDING: None, LOCAL: None}}


def test_labels_that_were_changed_by_hand_are_corrected() -> None:
    seen = Credentials.of(
        {"metadata": {"labels": {BY_SECRET_BINDING: "yes", OTHER: "true"}, "finalizers": [FINALIZER], "name": "c"}}
    )
    changes = needed_changes(seen, bindings(secret=["local"]))
    assert changes == {"labels": {BY_SECRET_BINDING: "true", LOCAL: "true", OTHER: None}}


def test_credentials_in_deletion_get_no_finalizer_but_lose_it() -> None:
    deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert needed_changes(credentials(finalizers=["a/b"], **deleting), bindings(secret=["local"])) == {}
    seen = credentials(BY_SECRET_BINDING, finalizers=[FINALIZER], **deleting)
    assert needed_changes(seen, bindings())["finalizers"] is None


def test_a_label_that_a_user_gave_credentials_without_bindings_stays() -> None:
    """Its changes are activity of the Project."""
    assert needed_changes(credentials(BY_SECRET_BINDING), bindings()) == {}


TYPES = st.lists(st.sampled_from(["local", "other", "local,other", ""]), max_size=3)
NAMES = st.sets(st.sampled_from([BY_SECRET_BINDING, BY_CREDENTIALS_BINDING, LOCAL, OTHER, "app"]))


def changed(labels: set[str], finalizers: list[str], changes: Object) -> tuple[set[str], list[str]]:
    for label, value in changes.get("labels", {}).items():
        (labels.discard if value is None else labels.add)(label)
    return labels, (changes["finalizers"] or []) if "finalizers" in changes else finalizers


@given(labels=NAMES, finalizers=st.lists(st.sampled_from([FINALIZER, "a/b"]), unique=True), first=TYPES, second=TYPES)
def test_one_write_settles_it(labels: set[str], finalizers: list[str], first: list[str], second: list[str]) -> None:
    bound = bindings(first, second)
    before = credentials(*labels, finalizers=finalizers)
    changes = needed_changes(before, bound)
    after, kept = changed(set(labels), finalizers, changes)
    assert needed_changes(credentials(*after, finalizers=kept), bound) == {}
    assert ("app" in after, "a/b" in kept) == ("app" in labels, "a/b" in finalizers)
    if first or second:
        assert FINALIZER in kept
        assert {BY_SECRET_BINDING} & after == ({BY_SECRET_BINDING} if first else set())
    elif before.were_referred_to and FINALIZER in finalizers:
        assert after <= {"app"}
        assert FINALIZER not in kept
    else:
        assert changes == {}


def test_of_other_metadata_nothing_is_kept() -> None:
    seen = Credentials.of({"metadata": {"name": "c", "labels": {"app": "x"}, "annotations": {"a": "b"}}, "data": {}})
    assert seen is Credentials.of({"metadata": {}})


def test_changes_of_labels_are_those_that_are_needed() -> None:
    present = {"a": "true", "b": "no", "c": "true", "x": "true"}
    assert changes_of_labels(present, {"a", "b"}, owned=["a", "b", "c", "d"]) == {"b": "true", "c": None}
    assert changes_of_labels({"a": "true"}, {"a"}, owned=["a"]) == {}
