"""What an extension's status reports to what was requested from it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardener.extension_contract import (
    Answer,
    Pending,
    Ready,
    Trouble,
    answer_of,
    is_migrated,
    is_unanswered,
    kick,
    needs_kick,
    needs_repeated_kick,
    pause_before_kick,
    standing_of,
)
from gardener.keys import OPERATION, TIMESTAMP
from kube.objects import Object

ASKED = "2026-01-01T10:00:00.500000Z"
SAME_SECOND, LATER, EARLIER = "2026-01-01T10:00:00Z", "2026-01-01T10:00:07Z", "2026-01-01T09:59:59Z"


def extension(
    *,
    generation: int = 2,
    observed: int = 2,
    operation: str = "",
    timestamp: str = ASKED,
    state: str = "Succeeded",
    kind: str = "Reconcile",
    updated: str = LATER,
    error: Object | None = None,
    deleting: bool = False,
) -> Object:
    annotations = {OPERATION: operation} if operation else {}
    annotations |= {TIMESTAMP: timestamp} if timestamp else {}
    status: dict[str, Any] = {"observedGeneration": observed}
    if state:
        status["lastOperation"] = {"type": kind, "state": state, "lastUpdateTime": updated}
    if error is not None:
        status["lastError"] = error
    meta: dict[str, Any] = {"generation": generation, "annotations": annotations}
    return {"metadata": meta | ({"deletionTimestamp": EARLIER} if deleting else {}), "status": status}


def error(updated: str = "") -> Object:
    return {"description": "e"} | ({"lastUpdateTime": updated} if updated else {})


QUOTA = {"description": "cloud: Quota exceeded for vCPUs", "codes": ["ERR_X"]}


@pytest.mark.parametrize(
    ("obj", "answer"),
    [
        (extension(), Ready()),
        (extension(updated=SAME_SECOND), Ready()),
        (extension(updated="2026-01-01T10:00:00.400000Z"), Pending("last operation is older than the request")),
        (extension(updated=EARLIER), Pending("last operation is older than the request")),
        (extension(observed=1), Pending("observed generation outdated (1/2)")),
        (
            extension(operation="reconcile"),
            Pending('gardener operation "reconcile" is not yet picked up by controller'),
        ),
        (extension(state=""), Pending("extension did not record a last operation yet")),
        (extension(state="Processing"), Pending("extension state is not Succeeded but Processing")),
        (
            extension(timestamp=""),
            Pending(f'annotation "{TIMESTAMP}" is not of this request but missing'),
        ),
        (
            extension(error=QUOTA, observed=1),
            Trouble(
                "error during reconciliation: cloud: Quota exceeded for vCPUs",
                ("ERR_X", "ERR_INFRA_QUOTA_EXCEEDED"),
            ),
        ),
        (extension(deleting=True), Pending("it is being deleted")),
        (extension(kind="Migrate"), Pending("the extension has migrated it, and has not restored it yet")),
        # An error is an answer if it is of this question.
        (extension(state="Error", error=error(LATER)), Trouble("error during reconciliation: e")),
        (extension(state="Error", error=error(SAME_SECOND)), Trouble("error during reconciliation: e")),
        (extension(state="Error", error=error()), Trouble("error during reconciliation: e")),
        (extension(state="", error=error()), Trouble("error during reconciliation: e")),
        (extension(error=error(EARLIER)), Trouble("error during reconciliation: e")),
        (
            extension(state="Processing", error=error(EARLIER)),
            Pending("extension state is not Succeeded but Processing; before this request, it reported: e"),
        ),
        (
            extension(state="Error", updated=EARLIER, error=error()),
            Pending("extension state is not Succeeded but Error; before this request, it reported: e"),
        ),
        (
            extension(operation="reconcile", state="Error", error=error(LATER)),
            Pending(
                'gardener operation "reconcile" is not yet picked up by controller; before this request, it reported: e'
            ),
        ),
        (
            extension(timestamp=LATER, state="Error", error=error(LATER)),
            Pending("extension state is not Succeeded but Error; before this request, it reported: e"),
        ),
    ],
)
def test_an_answer_belongs_to_what_was_requested_last(obj: Object, answer: Answer) -> None:
    assert answer_of(obj, kicked=ASKED) == answer


@pytest.mark.parametrize(
    ("obj", "spec_changed", "needed", "repeated"),
    [
        (extension(), False, False, False),
        (extension(), True, True, True),
        (extension(updated=EARLIER), False, True, False),
        (extension(state="Error"), False, True, False),
        (extension(state="Failed"), False, True, True),
        (extension(state="Failed", operation="reconcile"), False, True, True),
        (extension(state="Processing"), False, True, False),
        (extension(observed=1), False, True, True),
        (extension(observed=1, operation="reconcile", updated=LATER), False, False, False),
        (extension(state="", observed=2), False, True, True),
        (extension(state="", observed=2, operation="reconcile"), False, False, False),
        (extension(state="", observed=2, operation="wait-for-state"), False, True, False),
        (extension(operation="migrate"), False, True, False),
        (extension(kind="Migrate"), False, True, False),
        (extension(error=error(LATER)), False, True, False),
    ],
)
def test_an_unchanged_spec_that_is_answered_is_not_kicked_again(
    obj: Object, spec_changed: bool, needed: bool, repeated: bool
) -> None:
    assert needs_kick(obj, spec_changed=spec_changed) is needed
    assert needs_repeated_kick(obj, spec_changed=spec_changed) is repeated


@pytest.mark.parametrize(("changed", "needed"), [(EARLIER, False), (LATER, False), ("2026-01-01T10:00:08Z", True)])
def test_data_that_changed_after_the_answer_are_requested(changed: str, needed: bool) -> None:
    assert needs_kick(extension(), spec_changed=False, data_changed=changed) is needed
    assert needs_repeated_kick(extension(), spec_changed=False, data_changed=changed) is needed


def test_a_lost_kick_is_noticed() -> None:
    assert is_unanswered(extension(observed=1))
    assert not is_unanswered(extension(observed=1, operation="reconcile"))
    assert not is_unanswered(extension())


def test_each_kick_is_a_change() -> None:
    one, other = (
        kick("reconcile", now=datetime(2026, 1, 1, 10, 0, 0, micro, tzinfo=UTC)) for micro in (500000, 500001)
    )
    assert one == {OPERATION: "reconcile", TIMESTAMP: ASKED}
    assert one[TIMESTAMP] != other[TIMESTAMP]
    again = {"metadata": {"annotations": one}}
    assert kick("reconcile", now=datetime(2026, 1, 1, 10, 0, 0, 500000, tzinfo=UTC), live=again) == other


@pytest.mark.parametrize(
    ("obj", "requested", "pause"),
    [
        (extension(updated=EARLIER), ASKED, 0),
        # The answer that is there may not look like the next one, in the precision that it has.
        (extension(updated=SAME_SECOND), "2026-01-01T10:00:01.000000Z", 0.5),
        (extension(updated="2026-01-01T10:00:00.500000Z"), "2026-01-01T10:00:00.500001Z", 0.000001),
        # What is no success can't be mistaken for one, and changes all the time.
        (extension(state="Error", updated=SAME_SECOND, error=error(SAME_SECOND)), ASKED, 0),
        (extension(state="Processing", updated=SAME_SECOND), ASKED, 0),
        # The clock of the extension is ahead; within a second it is a second further.
        (extension(updated=LATER), "2026-01-01T10:00:08.000000Z", 1),
        # That is no time of an answer.
        (extension(updated="2999-01-01T00:00:00Z"), ASKED, 0),
        ({}, ASKED, 0),
    ],
)
def test_a_kick_is_later_than_the_answer_that_is_there(obj: Object, requested: str, pause: float) -> None:
    now = datetime(2026, 1, 1, 10, 0, 0, 500000, tzinfo=UTC)
    if annotations := obj.get("metadata", {}).get("annotations"):
        annotations[TIMESTAMP] = EARLIER
    assert kick("reconcile", now=now, live=obj)[TIMESTAMP] == requested
    assert pause_before_kick(obj, now=now) == pause


@pytest.mark.parametrize(
    ("obj", "answer"),
    [
        (extension(), Ready()),
        (extension(observed=1, updated=EARLIER), Ready()),
        (extension(state=""), Trouble("extension did not record a last operation yet")),
        (extension(state="Failed"), Trouble("extension state is not Succeeded but Failed")),
        (extension(state="Processing"), Pending("extension state is not Succeeded but Processing")),
        (extension(error={"description": "d"}), Trouble("error during reconciliation: d")),
    ],
)
def test_the_state_of_an_object_is_the_same_for_all_requests(obj: Object, answer: Answer) -> None:
    assert standing_of(obj) == answer


def test_an_object_is_migrated_once_its_extension_reports_so() -> None:
    assert is_migrated(extension(kind="Migrate"))
    assert not is_migrated(extension(kind="Migrate", operation="migrate"))
    assert not is_migrated(extension(kind="Migrate", state="Processing"))
    assert not is_migrated(extension())


@pytest.mark.parametrize("obj", [{}, {"status": 5}, {"status": {"lastOperation": [], "lastError": "x"}, "metadata": 3}])
def test_whatever_stands_there_is_read(obj: Object) -> None:
    assert isinstance(answer_of(obj), Pending)
    assert isinstance(standing_of(obj), Trouble)
    assert not is_migrated(obj)
