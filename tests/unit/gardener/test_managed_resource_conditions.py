"""The conditions that this controller writes, word for word: stable in their order, and bounded."""

from datetime import UTC, datetime, timedelta

import pytest

from gardener.managed_resource import conditions
from gardener.managed_resource.messages import (
    MAX_LENGTH,
    apply_error_text,
    apply_message,
    decoding_message,
    pending_message,
    pending_text,
    release_message,
)
from kube.conditions import Condition, with_conditions
from kube.objects import Object

NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
NOT_YET = "checks have not yet been executed for the current set of resources."
HEALTH_PENDING = Condition("ResourcesHealthy", "Unknown", "ChecksPending", f"The health {NOT_YET}")
PROGRESS_PENDING = Condition("ResourcesProgressing", "Unknown", "ChecksPending", NOT_YET.capitalize())


def stored(reason: str, message: str = "m", status: str = "False") -> list[Object]:
    return [{"type": "ResourcesApplied", "status": status, "reason": reason, "message": message}]


def test_an_ignored_one_counts_as_applied_and_healthy() -> None:
    message = "ManagedResource is marked to be ignored."
    assert conditions.ignored() == [
        Condition("ResourcesApplied", "True", "ManagedResourceIgnored", message),
        Condition("ResourcesHealthy", "True", "ManagedResourceIgnored", message),
        Condition("ResourcesProgressing", "False", "ManagedResourceIgnored", message),
    ]


@pytest.mark.parametrize(
    ("present", "reason", "message"),
    [
        *(
            (present, "ApplyProgressing", "The resources are currently being reconciled.")
            for present in ([], stored("ApplySucceeded"), stored("DecodingFailed"))
        ),
        *((stored(kept, "why"), kept, "why") for kept in ("ApplyFailed", "DeletionFailed", "DeletionPending")),
    ],
)
def test_a_reset_keeps_what_went_wrong(present: list[Object], reason: str, message: str) -> None:
    applied = Condition("ResourcesApplied", "Progressing", reason, message)
    assert conditions.reset(present) == [HEALTH_PENDING, PROGRESS_PENDING, applied]


def test_one_that_is_being_removed_is_neither_healthy_nor_idle() -> None:
    message = "The resources are currently being deleted."
    assert conditions.being_removed() == [
        Condition("ResourcesHealthy", "False", "DeletionPending", message),
        Condition("ResourcesProgressing", "True", "DeletionPending", message),
    ]


@pytest.mark.parametrize(
    ("present", "message"),
    [
        *((each, "The resources are currently being deleted.") for each in ([], stored("ApplyFailed", "why"))),
        *((stored(reason, "what holds it"), "what holds it") for reason in ("DeletionPending", "DeletionFailed")),
    ],
)
def test_while_deleting_the_condition_reports_what_holds_the_objects(present: list[Object], message: str) -> None:
    assert conditions.deleting(present) == Condition("ResourcesApplied", "Progressing", "DeletionPending", message)


@pytest.mark.parametrize(
    ("condition", "status", "reason", "message"),
    [
        (conditions.deletion_pending("m"), "Progressing", "DeletionPending", "m"),
        (conditions.failed(conditions.DELETION_FAILED, "m"), "False", "DeletionFailed", "m"),
        (conditions.failed(conditions.CANNOT_READ, "m"), "False", "CannotReadSecret", "m"),
        (conditions.failed(conditions.RELEASE_FAILED, "m"), "False", "ReleaseOfOrphanedResourcesFailed", "m"),
        (conditions.failed(conditions.APPLY_FAILED, "m"), "False", "ApplyFailed", "m"),
        (conditions.applied(), "True", "ApplySucceeded", "All resources are applied."),
        (conditions.applied(["a.", "b."]), "False", "DecodingFailed", "Could not decode all new resources: [a. b.]"),
    ],
)
def test_each_outcome_has_its_condition(condition: Condition, status: str, reason: str, message: str) -> None:
    assert condition == Condition("ResourcesApplied", status, reason, message)


@pytest.mark.parametrize(
    ("old", "new", "old_checksum", "new_checksum", "needed"),
    [
        ([], [], "c", "c", False),
        ([{"name": "a"}], [{"name": "a"}], "c", "c", False),
        ([{"name": "a"}], [{"name": "b"}], "c", "c", True),
        ([{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], "c", "c", True),
        ([], [], "c", "d", True),
        ([], [], "", "d", True),
    ],
)
def test_conditions_are_reset_if_something_else_is_described(
    *, old: list[Object], new: list[Object], old_checksum: str, new_checksum: str, needed: bool
) -> None:
    references = {"old_references": old, "new_references": new}
    found = conditions.needs_reset(**references, old_checksum=old_checksum, new_checksum=new_checksum)
    assert found is needed


def test_a_first_pass_appends_the_types_in_their_order() -> None:
    first = with_conditions([], conditions.reset([]), now=NOW)
    done = with_conditions(first, [conditions.applied()], now=NOW + timedelta(seconds=1))
    assert [(c["type"], c["lastTransitionTime"]) for c in done] == [
        ("ResourcesHealthy", "2024-01-02T03:04:05Z"),
        ("ResourcesProgressing", "2024-01-02T03:04:05Z"),
        ("ResourcesApplied", "2024-01-02T03:04:06Z"),
    ]


# --- messages of failures


@pytest.mark.parametrize(
    ("error", "events", "text"),
    [
        ("", "", 'deletion of old resource "v1/Service/ns/n" is still pending'),
        ("no", "", 'deletion of old resource "v1/Service/ns/n" is still pending: no'),
        (
            "",
            "-> Events:\n* lb reported 5s ago: quota",
            'deletion of old resource "v1/Service/ns/n" is still pending\n\n-> Events:\n* lb reported 5s ago: quota',
        ),
    ],
)
def test_a_pending_removal_reports_why(error: str, events: str, text: str) -> None:
    assert pending_text("v1/Service/ns/n", reason=error, events=events) == text


def test_pending_removals_are_listed_by_object_key() -> None:
    expected = "Could not clean all old resources: 2 errors occurred: [b is pending, a is pending]"
    assert pending_message([("k2", "a is pending"), ("k1", "b is pending")]) == expected
    assert pending_message([("k1", "b is pending"), ("k2", "a is pending")]) == expected
    assert pending_message([("k", "a")]) == "Could not clean all old resources: 1 error occurred: a"


def test_failed_releases_are_listed() -> None:
    assert release_message(["x"]) == "Could not release all orphaned resources: 1 error occurred: x"
    assert release_message(["y", "x"]) == "Could not release all orphaned resources: 2 errors occurred: [x, y]"


def test_a_single_apply_error_stands_for_itself() -> None:
    text = apply_error_text("v1/ConfigMap/ns/n", "no")
    assert apply_message([text]) == 'error during apply of object "v1/ConfigMap/ns/n": no'
    assert apply_message(["a", "b"]) == "Could not apply all new resources: 2 errors occurred: [a, b]"


def test_messages_are_cut() -> None:
    assert len(apply_message(["x" * 100_000])) == MAX_LENGTH
    many = apply_message([f"{i:04}: {'x' * 1000}" for i in range(1000)])
    assert len(many) < MAX_LENGTH + 200
    assert many.startswith("Could not apply all new resources: 1000 errors occurred: [0000: ")
    assert many.endswith(", and 984 more]")
    assert len(decoding_message(["x" * 5000] * 1000)) < MAX_LENGTH + 200
