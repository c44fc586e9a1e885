"""Garden objects that are mirrored as extension objects: what counts as an answer, and how often a failed one is requested again."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.gardenlet.common.extension_objects.mirroring import Pauses, answers
from agent.gardenlet.extensions.backup_bucket.reconcile import desired
from gardener.keys import OPERATION
from kube.objects import Key, Object
from kube.runtime.cache import Change

NAME = Key("", "a")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def extension(state: str, *, requested: str = "", time: int = 0) -> Object:
    status = {"lastOperation": {"state": state, "lastUpdateTime": time}} if state else {}
    return {"metadata": {"annotations": {OPERATION: requested} if requested else {}}, "status": status}


@pytest.mark.parametrize(
    ("old", "new", "initial", "is_answer"),
    [
        (extension("Processing"), extension("Succeeded"), False, True),
        (extension("Succeeded"), extension("Succeeded", time=1), False, True),
        (extension("Processing"), extension("Error"), False, True),
        (extension("Processing"), extension("Failed"), False, True),
        (extension("Succeeded"), extension("Processing"), False, False),
        (extension("Succeeded"), extension("Succeeded"), False, False),
        (extension("Processing"), extension("Succeeded", requested="reconcile"), False, False),
        (extension("Processing"), extension("Succeeded", requested="migrate"), False, False),
        (extension("Processing", requested="migrate"), extension("Succeeded", requested="migrate"), False, True),
        (None, extension("Failed"), True, True),
        (None, extension("Succeeded"), True, True),
        (extension("Succeeded"), None, False, False),
    ],
)
def test_an_answer_is_another_last_operation_that_has_ended(
    old: Object | None, new: Object | None, initial: bool, is_answer: bool
) -> None:
    assert answers(Change(NAME, old, new, initial)) is is_answer


def test_what_fails_at_once_is_queried_again_later_and_later() -> None:
    pauses, now = Pauses(), NOW
    waited = []
    for _ in range(4):
        assert pauses.next(NAME, now=now) == 0
        waited.append(pauses.next(NAME, now=now))
        now += timedelta(seconds=waited[-1])
    assert waited == [1, 2, 4, 8]
    pauses.forget(NAME)
    assert pauses.next(NAME, now=now) == 0
    assert pauses.next(NAME, now=now) == 1
    assert pauses.next(NAME, now=now - timedelta(hours=1)) == 1, "the clock was an hour ahead"


def test_the_spec_of_an_extension_object_follows_from_the_bucket() -> None:
    spec: Object = {"provider": {"type": "t", "region": "r"}, "secretRef": {"name": "s", "namespace": "n"}}
    wanted = {"type": "t", "region": "r", "secretRef": {"name": "bucket-a", "namespace": "garden"}}
    assert desired({"spec": spec}, "bucket-a") == wanted
    assert desired({"spec": {**spec, "providerConfig": {"a": 1}}}, "bucket-a") == {**wanted, "providerConfig": {"a": 1}}
