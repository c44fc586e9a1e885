"""What the status and the log report follows from what a pass did, and from nothing else."""

from typing import Any

import pytest

from agent.resource_manager.common.recent_changes import Action
from agent.resource_manager.managed_resource.rules.change_set import ChangeSet, Pending
from gardener.managed_resource.conditions import warnings_in
from gardener.managed_resource.warnings import ObjectWarnings
from kube.conditions import Condition
from kube.objects import Key

OWNER = Key("ns", "mr")
PENDING = Pending("/ConfigMap/ns/b", "b is still there", failed=True)
RESTRICTED = Pending("/ConfigMap/ns/a", "a may not be removed", failed=True, is_restricted=True)


def change_set(**fields: Any) -> ChangeSet:
    return ChangeSet(owner=OWNER, **fields)


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        (change_set(errors=["bad"]), "ApplyFailed", "bad"),
        (
            change_set(errors=["bad"], restricted=["no"], release_errors=["held"]),
            "ApplyFailed",
            "Could not apply all new resources: 2 errors occurred: [no, bad]",
        ),
        (
            change_set(release_errors=["held"], restricted=["no"]),
            "ReleaseOfOrphanedResourcesFailed",
            "Could not release all orphaned resources: 1 error occurred: held",
        ),
    ],
)
def test_what_failed_is_reported_together_with_what_is_restricted(
    changes: ChangeSet, reason: str, message: str
) -> None:
    assert changes.failure() == Condition("ResourcesApplied", "False", reason, message)
    assert not changes.is_complete


@pytest.mark.parametrize(
    ("changes", "decode_errors", "status", "reason"),
    [
        (change_set(created=1), (), "True", "ApplySucceeded"),
        (change_set(), ("not YAML",), "False", "DecodingFailed"),
        (change_set(restricted=["no"]), ("not YAML",), "False", "ApplyFailed"),
    ],
)
def test_all_is_done_that_may_be_done_and_could_be_decoded(
    changes: ChangeSet, decode_errors: tuple[str, ...], status: str, reason: str
) -> None:
    assert changes.is_complete
    assert changes.failure() is None
    outcome = changes.success(decode_errors)
    assert (outcome.status, outcome.reason) == (status, reason)
    assert all(error in outcome.message for error in (*decode_errors, *changes.restricted))


WARNED = {"a": ObjectWarnings({"apiVersion": "v1", "kind": "Pod", "namespace": "n", "name": "p"}, ("odd",), (), "b")}


@pytest.mark.parametrize(
    ("changes", "decode_errors", "message"),
    [
        (change_set(), (), "All resources are applied, with warnings: {}"),
        (change_set(), ("not YAML",), "Could not decode all new resources: [not YAML]; applied with warnings: {}"),
        (change_set(restricted=["no"]), (), "no; applied with warnings: {}"),
        (change_set(errors=["bad"]), (), "bad; applied with warnings: {}"),
        (
            change_set(release_errors=["held"]),
            (),
            "Could not release all orphaned resources: 1 error occurred: held; applied with warnings: {}",
        ),
    ],
)
def test_warnings_are_reported_whatever_else_failed(
    changes: ChangeSet, decode_errors: tuple[str, ...], message: str
) -> None:
    reported = "no object is a Pod; v1/Pod/n/p: odd"
    changes.warnings, changes.remarks = WARNED, ["no object is a Pod"]
    outcome = changes.failure() or changes.success(decode_errors)
    assert outcome.message == message.format(reported)
    assert warnings_in({"status": outcome.status, "message": outcome.message}) == reported


def test_what_is_pending_is_listed_by_object_and_before_what_is_restricted() -> None:
    changes = change_set(pending=[PENDING, RESTRICTED], restricted=["no"])
    assert changes.pending_message() == (
        "Could not clean all old resources: 3 errors occurred: [a may not be removed, b is still there, no]"
    )
    assert not changes.is_complete


@pytest.mark.parametrize(
    ("pending", "expected"), [([], False), ([RESTRICTED], True), ([RESTRICTED, PENDING], False), ([PENDING], False)]
)
def test_only_what_is_restricted_throughout_waits_for_a_user_to_change_that(
    pending: list[Pending], expected: bool
) -> None:
    assert change_set(pending=pending).is_restricted is expected


def test_changes_are_counted_in_words_and_listed_with_the_owner() -> None:
    changes = change_set(created=2, removed=1)
    changes.note(Action.CREATED, {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "a"})
    assert str(changes) == "2 created, 1 removed"
    [change] = changes.objects
    reported = change.owner, change.action, change.kind, change.key
    assert reported == (OWNER, Action.CREATED, "ConfigMap", Key("ns", "a"))
