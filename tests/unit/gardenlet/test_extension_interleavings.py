"""A gardenlet and an extension, step by step, in random order: what each decides about the object as it is.

Both sides go by the rules of the programs. What is between them is one object with a resourceVersion, and a second of
time for some of the steps, so that much happens within the precision of the answers. First one side misbehaves and
either may end between any two writes; then both do as they should. A gardenlet is never content before this question
was answered, nor reports an older error as the answer, and within a few passes it is content.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.gardenlet.common.extension_objects import kinds
from agent.gardenlet.common.extension_objects.questions import Question
from extension.rules import answer_time, operation_on
from gardener import keys, operations
from gardener.extension_contract import (
    Ready,
    Trouble,
    answer_of,
    answered_error,
    is_migrated,
    kick,
    pause_before_kick,
)
from kube.clock import format_time
from kube.errors import Conflict
from kube.objects import Object, annotations, finalizers, is_deleting, metadata, spec

FINALIZER = "extension"
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
MANY = settings(max_examples=100, deadline=None)


@dataclass
class World:
    """One object, as an API server keeps it, and who wrote what when."""

    chance: Random
    now: datetime = ORIGIN
    skew: timedelta = timedelta()
    """By which the clock of the extension is ahead."""
    live: Object | None = None
    version: int = 0
    kicked: int = 0
    """The version with the last kick."""
    kicked_at: datetime = ORIGIN
    answers: list[tuple[int, int, str]] = field(default_factory=list)
    """Versions of answers that succeeded, with generation and type."""
    errors: list[tuple[int, str]] = field(default_factory=list)
    """Versions of answers that did not, and their times."""
    log: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.log.append(f"{self.now.strftime('%S.%f')[:6]} {text}")

    def note_kick(self, operation: str, timestamp: str) -> None:
        self.kicked, self.kicked_at = self.version, self.now
        self.note(f"gardenlet: {operation} at {timestamp}")

    @property
    def obj(self) -> Object:
        assert self.live is not None
        return self.live

    def write(self, wanted: Object, *, status: bool = False) -> Object:
        """Raises Conflict."""
        meta = metadata(wanted)
        if self.live is None or meta["resourceVersion"] != metadata(self.live)["resourceVersion"]:
            raise Conflict(409, message="it has changed")
        kept, self.version = deepcopy(self.live), self.version + 1
        if status:
            kept["status"] = deepcopy(wanted.get("status", {}))
        else:
            kept["metadata"] = {**deepcopy(meta), "generation": metadata(kept)["generation"]}
            if spec(wanted) != spec(kept):
                kept["metadata"]["generation"] += 1
                kept["spec"] = deepcopy(spec(wanted))
        kept["metadata"]["resourceVersion"] = str(self.version)
        self.live = None if is_deleting(kept) and not finalizers(kept) else kept
        return deepcopy(kept)

    def create(self, wanted: Object) -> None:
        if self.live is not None:
            raise Conflict(409, message="it exists")
        self.version += 1
        self.live = deepcopy(wanted)
        self.live["metadata"] |= {"generation": 1, "resourceVersion": str(self.version), "uid": str(self.version)}

    def delete(self) -> None:
        if self.live is None or is_deleting(self.live):
            return
        deleted = deepcopy(self.live)
        deleted["metadata"]["deletionTimestamp"] = format_time(self.now)
        self.write(deleted)

    def annotate(self, obj: Object, **changes: str | None) -> Object:
        changed = {**annotations(obj), **{names[name]: value for name, value in changes.items()}}
        kept = {name: value for name, value in changed.items() if value is not None}
        return self.write({**obj, "metadata": {**metadata(obj), "annotations": kept}})

    def finalize(self, obj: Object, *names: str) -> Object:
        return self.write({**obj, "metadata": {**metadata(obj), "finalizers": list(names)}})

    def report(
        self, obj: Object, kind: str, state: str, *, at: datetime | None = None, error: str = "", of: int | None = None
    ) -> Object:
        """The status that an extension writes. Args: of: the generation."""
        moment = format_time(at or self.extension_now)
        reported: Object = {
            "observedGeneration": metadata(obj)["generation"] if of is None else of,
            "lastOperation": {"type": kind, "state": state, "lastUpdateTime": moment},
        }
        if error:
            reported["lastError"] = {"description": error, "lastUpdateTime": moment}
        written = self.write({**obj, "status": {**obj.get("status", {}), "lastError": None, **reported}}, status=True)
        if error:
            self.errors.append((self.version, moment))
        elif state == "Succeeded":
            self.answers.append((self.version, reported["observedGeneration"], kind))
        self.note(f"extension: {kind} {state} of {reported['observedGeneration']} at {moment} {error}")
        return written

    @property
    def extension_now(self) -> datetime:
        return self.now + self.skew


names = {"operation": keys.OPERATION, "timestamp": keys.TIMESTAMP, "confirmed": keys.CONFIRM_DELETION}
Steps = Iterator[None]


# --- the gardenlet: one pass of a flow; each step ends with a write, or a look


def deployed(world: World, question: Question, *, looks: int) -> Iterator[bool]:
    """Yields whether it is content."""
    for _ in range(looks or 5):
        live = deepcopy(world.live)
        if live is not None and is_deleting(live):
            yield False  # it is waited for
            continue
        if live is not None and (pause := pause_before_kick(live, now=world.now)):
            world.now += timedelta(seconds=pause)
        yield False
        try:
            if live is None:
                requested = kick(question.operation, now=world.now)
                world.create(question.body(None, requested))
            elif question.is_open(live):
                requested = kick(question.operation, now=world.now, live=live)
                world.write(question.body(live, requested))
            else:
                requested = annotations(live)
                break
        except Conflict:
            continue
        world.note_kick(question.operation, requested[keys.TIMESTAMP])
        break
    else:
        return
    yield from _awaited(world, requested.get(keys.TIMESTAMP, ""), looks=looks)


def _awaited(world: World, timestamp: str, *, looks: int) -> Iterator[bool]:
    for _ in range(looks):
        yield False
        match answer_of(world.live or {}, kicked=timestamp):
            case Ready():
                assert_answered(world)
                yield True
                return
            case Trouble():
                assert_error_is_new(world)


def restored(world: World, question: Question, *, looks: int) -> Iterator[bool]:
    waiting = Question(
        kind=question.kind, manifest=question.manifest, operation=keys.OPERATION_WAIT_FOR_STATE, is_demanded=True
    )
    yield from deployed(world, waiting, looks=0)
    if requested := (yield from _annotated(world, keys.OPERATION_RESTORE)):
        yield from _awaited(world, requested, looks=looks)


def _annotated(world: World, operation: str) -> Any:
    """The timestamp; empty: there is no object any more."""
    while world.live is not None:
        live = deepcopy(world.obj)
        if pause := pause_before_kick(live, now=world.now):
            world.now += timedelta(seconds=pause)
        yield False
        requested = kick(operation, now=world.now, live=live)
        try:
            world.annotate(live, operation=operation, timestamp=requested[keys.TIMESTAMP])
        except Conflict:
            continue
        world.note_kick(operation, requested[keys.TIMESTAMP])
        return requested[keys.TIMESTAMP]
    return ""


def migrated(world: World, _question: Question, *, looks: int) -> Iterator[bool]:
    if world.live is None:
        yield True
        return
    requested = yield from _annotated(world, keys.OPERATION_MIGRATE)
    for _ in range(looks):
        yield False
        if world.live is None or is_migrated(world.live):
            if world.live is not None:
                assert any(kind == operations.MIGRATE for _, _, kind in world.answers), world.log
            yield True
            return
        if answered_error(world.live, kicked=requested):
            assert_error_is_new(world)


def deleted(world: World, _question: Question, *, looks: int) -> Iterator[bool]:
    while world.live is not None and not is_deleting(world.live):
        live = deepcopy(world.live)
        if pause := pause_before_kick(live, now=world.now):
            world.now += timedelta(seconds=pause)
        yield False
        requested = kick("", now=world.now, live=live)[keys.TIMESTAMP]
        try:
            world.annotate(live, confirmed="true", timestamp=requested)
        except Conflict:
            continue
        world.note_kick("delete", requested)
        yield False
        world.delete()
    for _ in range(looks):
        yield False
        if world.live is None:
            yield True
            return
        if answered_error(world.live):
            assert_error_is_new(world)


def assert_answered(world: World) -> None:
    generation = metadata(world.obj)["generation"]
    found = [each for each in world.answers if each[0] > world.kicked and each[1] == generation]
    assert found, ["content too early", *world.log]
    assert found[-1][2] != operations.MIGRATE, ["content with an answer that it did not request", *world.log]


def assert_error_is_new(world: World) -> None:
    """But it may be of the second of the question: that counts only if it stays."""
    second = format_time(world.kicked_at)
    is_new = any(version > world.kicked or moment >= second for version, moment in world.errors)
    assert is_new, ["an older error", *world.log]


# --- extensions: each step ends with a write


def well(world: World) -> Steps:
    """An extension on our library: the order of writes is that of its reconciler."""
    while True:
        yield
        if world.live is None or not (operation := operation_on(world.obj)):
            continue
        obj = deepcopy(world.obj)
        if is_deleting(obj) and FINALIZER not in finalizers(obj):
            continue
        try:
            if operation not in {operations.DELETE, operations.MIGRATE} and FINALIZER not in finalizers(obj):
                obj = world.finalize(obj, *finalizers(obj), FINALIZER)
                yield
            obj = world.report(obj, operation, "Processing", at=answer_time(obj, world.extension_now))
            yield
            if annotations(obj).get(keys.OPERATION) and operation != operations.DELETE:
                obj = world.annotate(world.obj, operation=None)
                yield
            if operation == operations.MIGRATE:
                obj = world.finalize(obj)
                yield
            obj = world.report(obj, operation, "Succeeded", at=answer_time(obj, world.extension_now))
            yield
            if operation == operations.DELETE:
                world.finalize(obj)
        except (Conflict, AssertionError) as error:
            if isinstance(error, AssertionError) and world.live is not None:
                raise


def as_elsewhere(world: World) -> Steps:
    """As most extensions do: the annotation goes first. After a start, they look at what has not succeeded."""
    is_new = True
    while True:
        yield
        if world.live is None:
            is_new = True
            continue
        obj, requested = deepcopy(world.obj), annotations(world.obj).get(keys.OPERATION, "")
        last = obj.get("status", {}).get("lastOperation") or {}
        operation = operations.operation_of(obj)
        if operation == operations.DELETE:
            if FINALIZER not in finalizers(obj):
                continue
        elif requested not in {"reconcile", "migrate", "restore"} and not (
            is_new and not requested and last.get("state") != "Succeeded"
        ):
            is_new = False
            continue
        try:
            if requested and requested != keys.OPERATION_MIGRATE:
                obj = world.annotate(obj, operation=None)
                yield
            if operation != operations.DELETE and not is_deleting(obj) and FINALIZER not in finalizers(obj):
                obj = world.finalize(obj, *finalizers(obj), FINALIZER)
                yield
            obj = world.report(obj, operation, "Processing")
            yield
            obj = world.report(obj, operation, "Succeeded")
            yield
            if operation in {operations.DELETE, operations.MIGRATE}:
                obj = world.finalize(obj)
                yield
            if operation == operations.MIGRATE and world.live is not None:
                world.annotate(obj, operation=None)
            is_new = False
        except Conflict:
            is_new = True  # it is queued again


def badly(world: World) -> None:
    """One thing that an extension should not do, or an end of it between two writes."""
    if world.live is None:
        return
    obj, chance = deepcopy(world.obj), world.chance
    requested = annotations(obj).get(keys.OPERATION)
    generation, last = metadata(obj)["generation"], obj.get("status", {}).get("lastOperation") or {}
    match chance.choice(("lose", "old-generation", "old-time", "error", "again", "finalizer", "no-finalizer", "begin")):
        case "lose" if requested:
            world.annotate(obj, operation=None)
            world.note(f"extension: loses {requested}")
        case "old-generation" if generation > 1:
            world.report(obj, "Reconcile", "Succeeded", of=generation - 1)
        case "old-time" if world.kicked:
            before = world.kicked_at - timedelta(seconds=chance.choice((1, 3, 60)))
            world.report(obj, "Reconcile", "Succeeded", at=before)
            world.answers.pop()
        case "error" if requested is None:
            world.report(obj, last.get("type", "Create"), chance.choice(("Error", "Succeeded")), error="e")
        case "again" if last:
            world.write(obj, status=True)
        case "begin":
            world.report(obj, last.get("type", "Create"), "Processing")
        case "finalizer" if not is_deleting(obj):
            world.finalize(obj, FINALIZER)
        case "no-finalizer":
            world.finalize(obj)
            world.note("extension: has no finalizer")


# --- properties

FLOWS: dict[str, Callable[..., Iterator[bool]]] = {
    "reconcile": deployed,
    "restore": restored,
    "migrate": migrated,
    "delete": deleted,
}


def question_of(kind: kinds.Kind, number: int) -> Question:
    return Question(kind=kind, manifest={"metadata": {"name": "a"}, "spec": {"number": number}})


def play(world: World, extension: Callable[[World], Steps], kind: kinds.Kind, *, is_bad: bool) -> None:
    chance, number = world.chance, 0
    steps = extension(world)
    for _ in range(chance.randrange(1, 5)):
        number += chance.randrange(2)
        name = chance.choice(list(FLOWS))
        world.note(f"flow: {name} {number}")
        flow = FLOWS[name](world, question_of(kind, number), looks=4)
        for _ in range(chance.randrange(1, 25)):
            world.now += timedelta(milliseconds=chance.choice((0, 0, 100, 400, 1100)))
            match chance.randrange(10):
                case 0:
                    steps = extension(world)  # it ends, and begins from the top
                    world.note("extension: ends")
                case 1 | 2 if is_bad:
                    badly(world)
                case 3 | 4 | 5 | 6:
                    next(steps)
                case _:
                    if next(flow, True):
                        break
    # From now on all goes well, but what was begun is still there.
    question = question_of(kind, number + chance.randrange(2))
    for name in (chance.choice(list(FLOWS)), "reconcile", "delete"):
        assert any(_is_content(world, name, steps, question) for _ in range(3)), [name, *world.log]


def _is_content(world: World, name: str, steps: Steps, question: Question) -> bool:
    world.note(f"flow: {name}, at last")
    for is_content in FLOWS[name](world, question, looks=12):
        if is_content:
            return True
        world.now += timedelta(milliseconds=300)
        next(steps)
    return False


@pytest.mark.parametrize("kind", [kinds.NETWORK, kinds.INFRASTRUCTURE], ids=["asked-always", "asked-if-needed"])
@pytest.mark.parametrize("extension", [well, as_elsewhere])
@pytest.mark.parametrize("is_bad", [False, True], ids=["ends-anywhere", "misbehaves"])
@MANY
@given(chance=st.randoms(use_true_random=False), skew=st.sampled_from((0, 0.4, 3)))
def test_a_gardenlet_is_content_with_the_answer_to_this_question_alone_and_gets_it(
    kind: kinds.Kind, extension: Callable[[World], Steps], is_bad: bool, chance: Random, skew: float
) -> None:
    play(World(chance, skew=timedelta(seconds=skew)), extension, kind, is_bad=is_bad)
