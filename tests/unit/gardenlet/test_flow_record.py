"""What is remembered of flows, and the picture of it."""

from datetime import UTC, datetime

import pytest

from agent.gardenlet.flow.graph import Graph, Task
from agent.gardenlet.flow.record import FlowRecords, Recording, Subject
from gardener import error_codes
from gardener.flow_reports import Bar, FlowReport, State, TaskReport, bars, ticks
from kube.objects import Key


async def _act(_: None) -> None:
    pass


GRAPH = Graph(
    "Test",
    [
        Task("a", "First", _act),
        Task("b", "Second", _act),
        Task("out", "Left out", _act, after=["a", "b"]),
        Task("c", "Third", _act, after=["out"]),
        Task("d", "Fourth", _act, after=["c"]),
    ],
)
SUBJECT = Subject("Seed", Key("", "meadow"))


class World:
    def __init__(self, **limits: int) -> None:
        self.seconds = 100.0
        self.records = FlowRecords(now=lambda: self.seconds, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC), **limits)

    def begin(self, subject: Subject = SUBJECT) -> Recording:
        return self.records.begin(subject, GRAPH, {"out"})


def _tasks(report: FlowReport) -> dict[str, TaskReport]:
    return {each.id: each for each in report.tasks}


def test_a_running_flow_reports_what_each_task_waits_for() -> None:
    world = World()
    recording = world.begin()
    recording.start("a")
    recording.start("b")
    recording.wait("b", "Infrastructure x/y: its extension has not answered yet")
    world.seconds += 3
    assert recording.end("a") == 3
    world.seconds += 1
    report = recording.report()
    assert (report.flow, report.state, report.began, report.seconds) == (
        "Test",
        State.RUNNING,
        "2026-01-01T00:00:00Z",
        4,
    )
    tasks = _tasks(report)
    assert (tasks["a"].state, tasks["a"].seconds) == (State.SUCCEEDED, 3)
    assert (tasks["b"].state, tasks["b"].seconds, tasks["b"].reason) == (
        State.RUNNING,
        4,
        "Infrastructure x/y: its extension has not answered yet",
    )
    # A task that is left out stands for those before it.
    assert (tasks["c"].state, tasks["c"].after) == (State.WAITING, ["Second"])
    assert tasks["d"].after == ["Third"]
    assert "out" not in tasks


def test_objects_that_a_task_waits_for_are_known_until_it_has_them() -> None:
    world = World()
    recording = world.begin()
    recording.start("a")
    main, events = Key("s", "etcd-main"), Key("s", "etcd-events")
    recording.wait_for("a", "Etcd", main, "it does not exist")
    world.seconds += 2
    recording.wait_for("a", "Etcd", events, "it does not exist")
    recording.wait_for("a", "Etcd", main, "0 of 1 members are ready")
    task = TaskReport.of(_tasks(recording.report())["a"].data())
    assert [(each.key, each.since, each.reason) for each in task.awaited] == [
        (main, 0.0, "0 of 1 members are ready"),
        (events, 2.0, "it does not exist"),
    ]
    assert task.why == "Etcd s/etcd-main: 0 of 1 members are ready; Etcd s/etcd-events: it does not exist"
    recording.has("a", "Etcd", main)
    recording.has("a", "Etcd", main)
    assert [each.key for each in _tasks(recording.report())["a"].awaited] == [events]
    for number in range(20):
        recording.wait_for("a", "Etcd", Key("s", f"etcd-{number}"), "it does not exist")
    assert len(_tasks(recording.report())["a"].awaited) == 5


def test_a_task_that_has_started_names_the_one_that_it_waited_for_last() -> None:
    world = World()
    recording = world.begin()
    recording.start("a")
    recording.start("b")
    world.seconds += 1
    recording.end("b")
    world.seconds += 1
    recording.end("a")
    recording.start("c")
    assert _tasks(recording.report())["c"].after == ["First"]


def test_a_failure_has_attempts_codes_and_a_remedy_and_stops_what_comes_after() -> None:
    world = World()
    recording = world.begin()
    recording.start("a")
    recording.start("b")
    recording.retry("a", "no answer")
    recording.end("a", error="quota exceeded", codes=[error_codes.INFRA_QUOTA_EXCEEDED])
    recording.end("b")
    recording.close(State.FAILED)
    world.seconds += 1000
    report = recording.report()
    assert (report.state, report.seconds) == (State.FAILED, 0)
    failed, third = _tasks(report)["a"], _tasks(report)["c"]
    assert (failed.state, failed.attempts, failed.error) == (State.FAILED, 2, "quota exceeded")
    assert failed.reason == "the next attempt, after: no answer"
    assert "quota" in failed.remedy
    assert (third.state, third.after) == (State.NOT_STARTED, ["First"])


def test_what_still_ran_at_the_end_was_cancelled() -> None:
    world = World()
    recording = world.begin()
    recording.start("a")
    world.seconds += 5
    recording.close(State.CANCELED)
    world.seconds += 5
    task = _tasks(recording.report())["a"]
    assert (task.state, task.seconds) == (State.CANCELED, 5)


def test_an_object_has_a_running_flow_and_the_last_one() -> None:
    world = World()
    first = world.begin()
    assert world.records.find(SUBJECT) is not None
    first.close(State.SUCCEEDED)
    second = world.begin()
    flows = world.records.find(SUBJECT)
    assert flows is not None
    assert (flows.running, flows.last, flows.newest) == (second, first, second)
    second.close(State.FAILED)
    flows = world.records.find(SUBJECT)
    assert flows is not None
    assert (flows.running, flows.last) == (None, second)


def _subject(number: int) -> Subject:
    return Subject("Shoot", Key("garden", f"s{number}"))


def _names(world: World) -> list[str]:
    return [subject.key.name for subject, _ in world.records.all()]


def test_the_oldest_objects_are_forgotten() -> None:
    world = World(most_objects=3)
    for number in range(5):
        world.begin(_subject(number)).close(State.SUCCEEDED)
    assert _names(world) == ["s4", "s3", "s2"]
    world.begin(_subject(2))
    world.begin(_subject(5))
    assert _names(world) == ["s5", "s2", "s4"]


def test_flows_that_have_ended_are_forgotten_when_they_are_too_large_and_running_ones_stay() -> None:
    world = World(most_bytes=5000)
    running = world.begin(_subject(0))
    for number in range(1, 6):
        recording = world.begin(_subject(number))
        for task in "ab":
            recording.start(task)
            recording.end(task, error="x" * 10_000)
        recording.close(State.FAILED)
    world.begin(_subject(9))
    assert _names(world) == ["s9", "s5", "s0"]
    assert running.is_running


def test_texts_are_bounded() -> None:
    tasks = [Task(f"t{number}", f"Task {number}", _act) for number in range(100)]
    recording = FlowRecords().begin(SUBJECT, Graph("Large", tasks), ())
    for each in tasks:
        recording.start(each.id)
        recording.wait(each.id, "y" * 10_000)
        recording.end(each.id, error="x" * 100_000, codes=["z" * 1000] * 1000)
    assert recording.size < 180_000
    assert all(each.error.endswith("…") for each in recording.report().tasks)


# --- the picture


def _task(name: str, begin: float | None, seconds: float = 0.0) -> TaskReport:
    state = State.WAITING if begin is None else State.SUCCEEDED
    return TaskReport(id=name, name=name, state=state, begin=begin, seconds=seconds)


def _report(seconds: float, *tasks: TaskReport) -> FlowReport:
    return FlowReport(flow="Test", state=State.RUNNING, began="", seconds=seconds, tasks=tasks)


@pytest.mark.parametrize(
    ("seconds", "task", "left", "width"),
    [
        (10, _task("t", 0, 10), 0, 100),
        (10, _task("t", 5, 2.5), 50, 25),
        (10, _task("t", 5), 50, 2),
        (10, _task("t", 10), 98, 2),
        (0, _task("t", 0), 0, 2),
        (10, _task("t", None), 0, 0),
        # A report may be wrong, and the picture stays whole.
        (1, _task("t", 5, 5), 50, 50),
        (1, _task("t", -5, 1), 0, 2),
    ],
)
def test_a_bar_is_within_the_picture(seconds: float, task: TaskReport, left: int, width: int) -> None:
    assert bars(_report(seconds, task), width=100, least=2) == [Bar(task, left, width)]


def test_bars_are_in_the_order_of_their_start() -> None:
    tasks = [_task("waiting", None), _task("late", 5), _task("early", 1), _task("also-waiting", None)]
    found = [each.task.id for each in bars(_report(10, *tasks), width=100)]
    assert found == ["early", "late", "waiting", "also-waiting"]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, [0]),
        (4, [0, 1, 2, 3, 4]),
        (12, [0, 2, 4, 6, 8, 10, 12]),
        (1800, [0, 300, 600, 900, 1200, 1500, 1800]),
        (864_000, [86400 * number for number in range(9)]),
    ],
)
def test_the_axis_has_few_round_numbers(seconds: float, expected: list[int]) -> None:
    assert ticks(_report(seconds)) == expected


# --- JSON


def test_a_report_is_the_same_after_json() -> None:
    world = World()
    recording = world.begin()
    recording.start("a")
    recording.wait("a", "a reason")
    world.seconds += 1.5
    recording.end("a", error="broken", codes=["ERR_CONFIGURATION_PROBLEM"])
    report = recording.report()
    assert FlowReport.of(report.data()).data() == report.data()


@pytest.mark.parametrize("data", [{}, {"tasks": 7, "seconds": "x", "state": "?"}, {"tasks": [7, {"begin": True}]}])
def test_a_report_that_is_none_is_empty(data: dict[str, object]) -> None:
    assert FlowReport.of(data).flow == ""
