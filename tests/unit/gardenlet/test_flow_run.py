"""Flows that are carried out: any graph, any failures, any cancellation."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.registry import REGISTRY

from agent.gardenlet.common.extension_objects.objects import ExtensionError
from agent.gardenlet.flow.graph import ONCE, Graph, Retry, Snapshot, Task
from agent.gardenlet.flow.record import FlowRecords, Subject
from agent.gardenlet.flow.run import FlowCanceled, FlowFailed, awaiting, run, waits_for
from components.results import Result, Results
from gardener.flow_reports import State
from kit.clock import FakeClock, settle, skip
from kube.errors import Conflict, KubeError, TimedOut
from kube.objects import Key
from kube.runtime.controller import ReconcileError, TerminalError
from kube.runtime.waiting import NotInTimeError


@dataclass
class World:
    """What the tasks of a flow do, and did."""

    errors: dict[str, Exception] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    """For how many turns of the event loop a task runs."""
    left_out: frozenset[str] = frozenset()
    events: list[tuple[str, str]] = field(default_factory=list)

    def ids(self, what: str) -> list[str]:
        return [each for kind, each in self.events if kind == what]


def _task(name: str, after: frozenset[str] = frozenset()) -> Task[World]:
    async def act(world: World) -> None:
        world.events.append(("start", name))
        try:
            for _ in range(world.turns.get(name, 0)):
                await asyncio.sleep(0)
            if name in world.errors:
                raise world.errors[name]
            world.events.append(("success", name))
        finally:
            world.events.append(("end", name))

    return Task(name, f"Task {name}", act, after=after, unless=lambda world: name in world.left_out, retry=ONCE)


@st.composite
def _graphs(draw: st.DrawFn) -> Graph[World]:
    names = [f"t{number}" for number in range(draw(st.integers(1, 8)))]
    tasks = [
        _task(name, draw(st.frozensets(st.sampled_from(names[:number])) if number else st.just(frozenset())))
        for number, name in enumerate(names)
    ]
    return Graph("Test", draw(st.permutations(tasks)))


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Graph[World], World]:
    graph = draw(_graphs())
    some = st.frozensets(st.sampled_from(sorted(graph.tasks)))
    errors: dict[str, Exception] = {each: KubeError(each) for each in draw(some)}
    turns = draw(st.dictionaries(st.sampled_from(sorted(graph.tasks)), st.integers(1, 3)))
    return graph, World(errors=errors, turns=turns, left_out=draw(some))


def _stopped(graph: Graph[World], world: World) -> set[str]:
    """Tasks that can't run, since one before them fails."""
    stopped = set[str]()
    for each in graph.order:
        before = graph.tasks[each].after
        if any(other in stopped or (other in world.errors and other not in world.left_out) for other in before):
            stopped.add(each)
    return stopped


def _assert_order(graph: Graph[World], world: World) -> None:
    done = set[str]()
    for what, name in world.events:
        if what == "start":
            awaited = set(graph.tasks[name].after)
            while left_out := awaited & world.left_out:
                awaited -= left_out
                awaited |= {each for other in left_out for each in graph.tasks[other].after}
            assert awaited <= done
        elif what == "success":
            done.add(name)


@settings(max_examples=150, deadline=None)
@given(case=_cases())
def test_whatever_fails_all_else_runs_once_and_in_order(case: tuple[Graph[World], World]) -> None:
    graph, world = case
    snapshots: list[Snapshot] = []
    stopped = _stopped(graph, world)
    expected = graph.tasks.keys() - world.left_out - stopped
    failed = {each for each in expected if each in world.errors}
    try:
        asyncio.run(run(graph, world, on_change=snapshots.append))
    except FlowFailed as error:
        assert {each.task for each in error.snapshot.failures} == {f"Task {each}" for each in failed}
        assert error.snapshot == snapshots[-1]
    else:
        assert not failed
        assert (snapshots[-1].progress, snapshots[-1].description) == (100, "Test finished")
    assert sorted(world.ids("start")) == sorted(world.ids("end")) == sorted(expected)
    _assert_order(graph, world)
    assert all(each.description for each in snapshots)
    assert [each.progress for each in snapshots] == sorted(each.progress for each in snapshots)


@settings(max_examples=150, deadline=None)
@given(case=_cases(), turns=st.integers(0, 25))
def test_no_task_goes_on_when_a_flow_is_cancelled(case: tuple[Graph[World], World], turns: int) -> None:
    graph, world = case

    async def cancelled() -> bool:
        flow = asyncio.create_task(run(graph, world))
        for _ in range(turns):
            await asyncio.sleep(0)
        flow.cancel()
        await asyncio.wait([flow])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        flow.cancelled() or flow.exception()
        return flow.cancelled()

    was_cancelled = asyncio.run(cancelled())
    assert sorted(world.ids("start")) == sorted(world.ids("end"))
    _assert_order(graph, world)
    if not was_cancelled:
        assert set(world.ids("start")) == graph.tasks.keys() - world.left_out - _stopped(graph, world)


@dataclass
class Stubborn:
    """A task that refuses to be cancelled."""

    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, _: None) -> None:
        while not self.release.is_set():
            with suppress(asyncio.CancelledError):
                await self.release.wait()


async def _unwind() -> None:
    for seconds in (3.0, 1.0):
        skip(seconds)
        await settle()


async def test_a_task_that_refuses_to_be_cancelled_holds_no_one_up() -> None:
    stubborn = Stubborn()
    flow = asyncio.create_task(run(Graph("Test", [Task("a", "A", stubborn)]), None))
    await settle()
    flow.cancel()
    await settle()
    assert not flow.done()
    await _unwind()
    assert flow.cancelled()
    stubborn.release.set()
    await settle()


async def test_a_task_that_goes_on_after_its_cancellation_is_cancelled_again() -> None:
    lives = list[str]()

    async def act(_: None) -> None:
        for life in ("first", "second", "third"):
            lives.append(life)
            with suppress(*[asyncio.CancelledError] * (life == "first")):
                await asyncio.Event().wait()

    flow = asyncio.create_task(run(Graph("Test", [Task("a", "A", act)]), None))
    await settle()
    flow.cancel()
    await settle()
    skip(3.0)
    await settle()
    assert flow.cancelled()
    assert lives == ["first", "second"]


async def test_a_task_that_makes_an_error_of_its_cancellation_is_not_tried_again() -> None:
    calls = list[str]()

    async def act(_: None) -> None:
        calls.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise KubeError("no answer came") from None

    flow = asyncio.create_task(run(Graph("Test", [Task("a", "A", act)]), None))
    await settle()
    flow.cancel()
    await settle()
    assert flow.cancelled()
    assert calls == ["begun"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_task_that_blocks_a_thread_holds_no_one_up() -> None:
    blocker, has_begun = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        loop.call_soon_threadsafe(has_begun.set)
        blocker.wait()

    async def act(_: None) -> None:
        await asyncio.to_thread(block)

    flow = asyncio.create_task(run(Graph("Test", [Task("a", "A", act)]), None))
    await has_begun.wait()
    try:
        flow.cancel()
        await asyncio.wait([flow])
        assert flow.cancelled()
    finally:
        blocker.set()


def _failing(times: float, error: Exception, calls: list[float], now: Callable[[], float]) -> Callable[[None], object]:
    async def act(_: None) -> None:
        calls.append(now())
        if len(calls) <= times:
            raise error

    return act


@pytest.mark.parametrize(
    ("error", "times", "calls"),
    [
        pytest.param(KubeError("not now"), 2, [0, 5, 10], id="until-it-succeeds"),
        pytest.param(ReconcileError("no"), 99, [0, 5, 10, 15, 20, 25, 30], id="for-half-a-minute"),
        pytest.param(TerminalError("never"), 99, [0], id="not-if-it-is-final"),
        pytest.param(TimedOut("no answer"), 99, [0], id="not-if-a-request-took-longer-than-that"),
        pytest.param(NotInTimeError("not ready"), 99, [0], id="not-if-it-was-waited-for"),
        pytest.param(TypeError("a bug"), 99, [0], id="not-if-it-is-a-bug"),
    ],
)
async def test_a_failed_task_is_tried_again(error: Exception, times: int, calls: list[float]) -> None:
    clock, made = FakeClock(0.0), list[float]()
    task = Task("a", "A", _failing(times, error, made, clock))  # type: ignore[arg-type]
    flow = asyncio.create_task(run(Graph("Test", [task]), None, sleep=clock.sleep))
    for _ in range(8):
        await settle()
        clock.advance(5)
    await asyncio.wait([flow])
    assert made == calls
    assert isinstance(flow.exception(), FlowFailed) == (times == 99)


async def test_time_within_an_attempt_does_not_count() -> None:
    clock, calls = FakeClock(0.0), list[float]()

    async def slow(_: None) -> None:
        await clock.sleep(60)  # as making keys may take
        calls.append(clock())
        if len(calls) == 1:
            raise KubeError("not now")

    task = Task("a", "A", slow, retry=Retry(every=5.0, within=5.0))
    flow = asyncio.create_task(run(Graph("Test", [task]), None, sleep=clock.sleep))
    for _ in range(30):
        await settle()
        clock.advance(5)
    await flow
    assert calls == [60, 125]


async def test_a_bug_fails_its_task_and_reports_what_it_is() -> None:
    async def act(_: None) -> None:
        raise TypeError("oops")

    with pytest.raises(FlowFailed, match=r'\[task "A" failed: panic: TypeError: oops'):
        await run(Graph("Test", [Task("a", "A", act)]), None)


async def test_a_task_that_is_cancelled_from_within_has_failed() -> None:
    async def act(_: None) -> None:
        raise asyncio.CancelledError

    with pytest.raises(FlowFailed, match="cancelled from within"):
        await run(Graph("Test", [Task("a", "A", act)]), None)


async def test_a_flow_that_takes_too_long_reports_what_has_not_ended() -> None:
    async def act(_: None) -> None:
        await asyncio.Event().wait()

    flow = asyncio.create_task(run(Graph("Test", [Task("a", "A", act)]), None, limit=600.0))
    await settle()
    skip(601.0)
    text = r'^flow "Test" was canceled: it took longer than 10m0s; unfinished: A$'
    with pytest.raises(FlowCanceled, match=text):
        await flow


async def test_a_flow_that_takes_too_long_ends_whatever_hangs() -> None:
    stubborn = Stubborn()
    flow = asyncio.create_task(run(Graph("Test", [Task("a", "A", stubborn)]), None, limit=600.0))
    await settle()
    skip(601.0)
    await settle()
    await _unwind()
    assert flow.done()
    with pytest.raises(FlowCanceled):
        await flow
    stubborn.release.set()
    await settle()


# --- what is recorded


async def test_a_run_is_recorded_with_what_tasks_wait_for_and_how_long_they_took() -> None:
    async def wait(_: World) -> None:
        waits_for("a bucket")
        await asyncio.sleep(0)

    graph = Graph("Recorded", [Task("a", "First", wait), _task("b", frozenset("a")), _task("c", frozenset("b"))])
    records, subject = FlowRecords(), Subject("Seed", Key("", "meadow"))
    with pytest.raises(FlowFailed):
        error = ExtensionError("broken", ("ERR_INFRA_QUOTA_EXCEEDED",))
        await run(graph, World(errors={"b": error}), record=(records, subject))
    flows = records.find(subject)
    assert flows is not None
    assert flows.last is not None
    first, second, third = flows.last.report().tasks
    assert (first.state, first.reason) == (State.SUCCEEDED, "a bucket")
    assert (second.state, second.error, second.after) == (State.FAILED, "broken", ["First"])
    assert second.codes == ("ERR_INFRA_QUOTA_EXCEEDED",)
    assert "quota" in second.remedy
    assert (third.state, third.after) == (State.NOT_STARTED, ["Task b"])
    labels = {"flow": "Recorded", "task": "b"}
    assert REGISTRY.get_sample_value("gardenlet_flow_task_duration_seconds_count", labels) == 1
    labels = {"flow": "Recorded", "result": "Failed"}
    assert REGISTRY.get_sample_value("gardenlet_flow_duration_seconds_count", labels) == 1


async def test_a_conflict_with_another_writer_begins_a_task_again() -> None:
    pauses, conflicts = list[float](), [Conflict(409, message="the object has been modified") for _ in range(3)]

    async def act(_: World) -> None:
        if conflicts:
            async with asyncio.TaskGroup():
                raise conflicts.pop()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    seen = list[Snapshot]()
    await run(Graph("Test", [Task("a", "First", act, retry=ONCE)]), World(), on_change=seen.append, sleep=sleep)
    assert pauses == [0.1, 0.2, 0.4]
    assert not any(each.failures for each in seen)


async def test_news_of_what_a_task_waits_for_is_shown() -> None:
    ended = "its process has ended and is started again: Error: no: such file"

    async def wait(_: World) -> None:
        with awaiting("Deployment", Key("n", "x")) as note:
            for reason in ("building it, 40 %", "starting", ended, ended, f"{ended}s", "probing"):
                note(f"Available is False: {reason}")
        await asyncio.sleep(0)

    seen = list[str]()
    graph = Graph("Test", [Task("a", "First", wait), _task("b", frozenset("a"))])
    await run(graph, World(), on_change=lambda snapshot: seen.append(snapshot.description))
    shown = ["First", "First (building it, 40 %)", "First", f"First ({ended})", f"First ({ended}s)", "First"]
    assert seen == [*shown, "Task b", "Test finished"]


@given(_cases())
@settings(max_examples=100)
def test_a_record_agrees_with_what_tasks_did(case: tuple[Graph[World], World]) -> None:
    graph, world = case
    records, subject = FlowRecords(), Subject("Seed", Key("", "meadow"))
    with suppress(FlowFailed):
        asyncio.run(run(graph, world, record=(records, subject)))
    flows = records.find(subject)
    assert flows is not None
    assert flows.running is None
    assert flows.last is not None
    tasks = {each.id: each for each in flows.last.report().tasks}
    stopped = _stopped(graph, world)
    assert set(tasks) == set(graph.tasks) - world.left_out
    for name, task in tasks.items():
        failed = State.FAILED if name in world.errors else State.SUCCEEDED
        assert task.state is (State.NOT_STARTED if name in stopped and name not in world.ids("start") else failed)
        # What it names as awaited is a task of the record, and one that did not succeed if it has not started.
        awaited = [each for each in tasks.values() if each.name in task.after]
        assert len(awaited) == len(task.after)
        if task.begin is None:
            assert awaited
            assert all(each.state is not State.SUCCEEDED for each in awaited)
        else:
            assert all((each.begin or 0) + each.seconds <= task.begin for each in awaited)


def test_outside_of_flows_what_is_waited_for_is_noted_nowhere() -> None:
    waits_for("anything")


# --- results

NUMBER, WORD = Result("number", 0), Result("word", "none")


async def test_a_task_reads_the_results_of_those_before_it() -> None:
    results, read = Results(), list[tuple[int, str]]()

    async def provide(_: World) -> int:
        return 1

    async def reader(_: World) -> None:
        read.append((results[NUMBER], results[WORD]))

    async def word(_: World) -> str:
        return "unused"

    tasks = [
        Task("a", "A", provide, provides=NUMBER),
        Task("b", "B", word, provides=WORD, unless=lambda _: True),
        Task("c", "C", reader, after="ab", reads=[NUMBER, WORD]),
    ]
    await run(Graph("Test", tasks), World(), results=results)
    assert read == [(1, "none")]
    assert results[NUMBER] == 1


async def test_a_task_that_reads_a_result_without_declaring_it_fails() -> None:
    results = Results({NUMBER: 1})

    async def reader(_: World) -> None:
        results[NUMBER]

    with pytest.raises(FlowFailed, match="result 'number' is read, but not declared"):
        await run(Graph("Test", [Task("a", "A", reader, reads=[WORD])]), World(), results=results)
