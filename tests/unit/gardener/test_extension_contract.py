"""What an extension's status says to what was asked of it."""

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
) -> Object:
    annotations = {OPERATION: operation} if operation else {}
    annotations |= {TIMESTAMP: timestamp} if timestamp else {}
    status: dict[str, Any] = {"observedGeneration": observed}
    if state:
        status["lastOperation"] = {"type": kind, "state": state, "lastUpdateTime": updated}
    if error is not None:
        status["lastError"] = error
    return {"metadata": {"generation": generation, "annotations": annotations}, "status": status}


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
                ("ERR_INFRA_QUOTA_EXCEEDED", "ERR_X"),
            ),
        ),
    ],
)
def test_an_answer_belongs_to_what_was_asked_last(obj: Object, answer: Answer) -> None:
    assert answer_of(obj, kicked=ASKED) == answer


@pytest.mark.parametrize(
    ("obj", "spec_changed", "needed"),
    [
        (extension(), False, False),
        (extension(), True, True),
        (extension(updated=EARLIER), False, True),
        (extension(state="Error"), False, True),
        (extension(state="Processing"), False, True),
        (extension(observed=1), False, True),
        (extension(observed=1, operation="reconcile", updated=LATER), False, False),
        (extension(state="", observed=2), False, True),
        (extension(state="", observed=2, operation="reconcile"), False, False),
    ],
)
def test_an_unchanged_spec_that_is_answered_is_not_kicked_again(obj: Object, spec_changed: bool, needed: bool) -> None:
    assert needs_kick(obj, spec_changed=spec_changed) is needed


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
def test_how_an_object_is_whoever_asked(obj: Object, answer: Answer) -> None:
    assert standing_of(obj) == answer


def test_an_object_is_migrated_once_its_extension_says_so() -> None:
    assert is_migrated(extension(kind="Migrate"))
    assert not is_migrated(extension(kind="Migrate", operation="migrate"))
    assert not is_migrated(extension(kind="Migrate", state="Processing"))
    assert not is_migrated(extension())


@pytest.mark.parametrize("obj", [{}, {"status": 5}, {"status": {"lastOperation": [], "lastError": "x"}, "metadata": 3}])
def test_whatever_stands_there_is_read(obj: Object) -> None:
    assert isinstance(answer_of(obj), Pending)
    assert isinstance(standing_of(obj), Trouble)
    assert not is_migrated(obj)
