"""Garden objects that are mirrored as extension objects: what counts as an answer, and how often a failed one is requested again."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest

from agent.gardenlet.common.extension_objects.mirroring import Pauses, answers
from agent.gardenlet.extensions.backup_bucket.reconcile import desired
from gardener.extension_contract import has_succeeded, kick, last_operation
from gardener.keys import OPERATION
from kube.objects import Key, Object, annotations
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


TYPES = {"reconcile": "Reconcile", "migrate": "Migrate", "restore": "Restore"}
PARTS = ("annotation", "status", "finalizer")


def in_any_order(parts: tuple[str, ...]) -> Iterator[tuple[frozenset[str], ...]]:
    """All ways to write the parts, in one request or several."""
    if not parts:
        yield ()
    for size in range(1, len(parts) + 1):
        for first in combinations(parts, size):
            for rest in in_any_order(tuple(each for each in parts if each not in first)):
                yield (frozenset(first), *rest)


def requested_of(previous: str, operation: str) -> Object:
    """A request after the response to a previous one, both in the same second."""
    live = responded(extension(""), previous)
    live["status"]["observedGeneration"] = 1
    live["metadata"] |= {"generation": 2, "annotations": kick(operation, now=NOW, live=live)}
    return live


def responded(obj: Object, operation: str, *, seconds: int = 0, state: str = "Succeeded") -> Object:
    changed, updated = deepcopy(obj), (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    last = {"type": TYPES[operation], "state": state, "lastUpdateTime": updated}
    changed["status"] = {"lastOperation": last, "observedGeneration": 2}
    return changed


def written(obj: Object, part: str, operation: str) -> Object:
    changed = deepcopy(obj)
    match part:
        case "annotation":
            del changed["metadata"]["annotations"][OPERATION]
        case "finalizer":
            changed["metadata"]["finalizers"] = ["extension"]
        case "status":
            changed = responded(obj, operation, seconds=2)
        case "processing":
            changed = responded(obj, operation, seconds=2, state="Processing")
    return changed


@pytest.mark.parametrize("operation", TYPES)
@pytest.mark.parametrize("previous", TYPES)
@pytest.mark.parametrize("is_processing_first", [False, True])
def test_a_response_counts_in_whichever_order_an_extension_writes_it(
    previous: str, operation: str, is_processing_first: bool
) -> None:
    """The change that completes the response starts a pass; the annotation alone, before the status, starts none."""
    for writes in in_any_order(PARTS):
        live, answered = requested_of(previous, operation), list[Object]()
        for parts in ([frozenset({"processing"})] if is_processing_first else []) + list(writes):
            old = live
            for part in sorted(parts):
                live = written(live, part, operation)
            if answers(Change(NAME, old, live, False)):
                answered.append(live)
        assert has_succeeded(live)
        complete = [each for each in answered if has_succeeded(each) and last_operation(each) == last_operation(live)]
        assert complete, writes
        if previous != operation or operation == "reconcile":
            assert all(last_operation(each) == last_operation(live) for each in answered), writes


def test_neither_a_request_nor_a_finalizer_is_a_response() -> None:
    for operation in TYPES:
        live = requested_of("reconcile", operation)
        before = {**live, "metadata": {**live["metadata"], "annotations": {}}}
        assert not answers(Change(NAME, before, live, False))
        assert not answers(Change(NAME, live, written(live, "finalizer", operation), False))
        assert OPERATION in annotations(live)


@pytest.mark.parametrize("field", ["lastError", "providerStatus", "ingress", "observedGeneration"])
def test_a_field_that_an_extension_writes_after_its_response_counts(field: str) -> None:
    old = extension("Succeeded")
    assert answers(Change(NAME, old, {**old, "status": {**old["status"], field: {"a": 1}}}, False))
    assert not answers(Change(NAME, old, {**old, "status": {**old["status"], "conditions": [{}]}}, False))


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
