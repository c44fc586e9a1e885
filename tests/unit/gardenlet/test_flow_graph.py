"""Which tasks of a flow may run, and what is reported of it, by tables."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent.gardenlet.flow.graph import Graph, GraphError, Task, TaskFailure, Walk
from agent.gardenlet.flow.run import FlowFailed
from components.results import Result, Results

ZONES = Result("zones", "")


async def _nothing(_: object) -> None: ...


def _task(name: str, after: Sequence[str] = ()) -> Task[object]:
    return Task(name.lower(), name, _nothing, after=after)


DIAMOND = Graph("Test", [_task("A"), _task("B", ["a"]), _task("C", ["a"]), _task("D", ["b", "c"])])


def _started(walk: Walk[object]) -> str:
    return "".join(sorted(task.id for task in walk.start()))


def _end(walk: Walk[object], *ids: str) -> None:
    for each in ids:
        walk.end(DIAMOND.tasks[each])


def _fail(walk: Walk[object], each: str, error: str = "no") -> None:
    task = DIAMOND.tasks[each]
    walk.end(task, TaskFailure(task.name, ValueError(error), error))


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ([_task("A"), _task("A")], "more than one task has the ID 'a'"),
        ([_task("A"), Task("b", "A", _nothing)], "more than one task has the name 'A'"),
        ([_task("A", ["x"])], "task 'a' comes after 'x', which is not a task"),
        ([_task("A", ["a"])], "tasks wait for each other: a -> a"),
        ([_task("A", ["b"]), _task("B", ["c"]), _task("C", ["a"])], "tasks wait for each other: "),
    ],
)
def test_a_wrong_table_is_found_when_the_graph_is_made(tasks: Sequence[Task[object]], problem: str) -> None:
    with pytest.raises(GraphError, match=problem):
        Graph("Test", tasks)


def _with(name: str, after: Sequence[str] = (), *, provides: bool = False, reads: bool = False) -> Task[object]:
    return replace(_task(name, after), provides=ZONES if provides else None, reads=[ZONES] if reads else ())


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ([_with("A", provides=True), _with("B", reads=True)], "task 'b' has no order with 'a', which provides 'zones'"),
        ([_with("A", provides=True), _with("B", provides=True)], "task 'b' has no order with 'a'"),
        ([_with("A", reads=True), _with("B", "a", provides=True)], "task 'a' reads 'zones' before it is provided"),
        (
            [_with("A", provides=True), _task("B", "a"), _with("C", "b", reads=True), _with("D", "a", provides=True)],
            "task 'c' has no order with 'd'",
        ),
    ],
)
def test_results_are_provided_before_they_are_read(tasks: Sequence[Task[object]], problem: str) -> None:
    with pytest.raises(GraphError, match=problem):
        Graph("Test", tasks)


def test_a_later_task_can_provide_a_result_again() -> None:
    """Readers before it get the first value, readers after it the second one; it may read the first one, too."""
    first, again = _with("A", provides=True, reads=True), _with("D", "c", provides=True, reads=True)
    Graph("Test", [first, _task("B", "a"), _with("C", "b", reads=True), again, _with("E", "d", reads=True)])


def test_a_result_that_no_task_of_the_flow_provides_has_its_default() -> None:
    Graph("Test", [_with("A", reads=True)])
    assert Results()[ZONES] == ""


def test_all_problems_of_a_table_are_named() -> None:
    with pytest.raises(
        GraphError, match=r"^flow 'Test': more than one task has the ID 'a'; .*; task 'b' comes after 'x'"
    ):
        Graph("Test", [_task("A"), _task("A"), _task("B", ["x"])])


def test_a_task_starts_when_all_before_it_are_done() -> None:
    walk = Walk(DIAMOND)
    assert _started(walk) == "a"
    assert _started(walk) == ""
    _end(walk, "a")
    assert _started(walk) == "bc"
    _end(walk, "b")
    assert _started(walk) == ""
    _end(walk, "c")
    assert _started(walk) == "d"


def test_a_failure_stops_only_what_comes_after_it() -> None:
    walk = Walk(DIAMOND)
    walk.start()
    _end(walk, "a")
    walk.start()
    _fail(walk, "c")
    assert _started(walk) == ""
    _end(walk, "b")
    assert _started(walk) == ""
    snapshot = walk.snapshot()
    assert (snapshot.progress, snapshot.description) == (50, "C")
    assert list(map(str, snapshot.failures)) == ['task "C" failed: no']


def test_an_error_of_the_run_before_goes_when_its_task_succeeds() -> None:
    walk = Walk(DIAMOND, failed_before=["C"])
    walk.start()
    _end(walk, "a")
    walk.start()
    assert walk.snapshot().failed_before == {"C"}
    _end(walk, "c")
    assert walk.snapshot().failed_before == set()
    _end(walk, "b")
    assert _started(walk) == "d"


def test_order_holds_across_what_is_left_out() -> None:
    walk = Walk(DIAMOND, left_out=["b", "c"])
    assert _started(walk) == "a"
    assert walk.snapshot().total == 2
    _end(walk, "a")
    assert _started(walk) == "d"
    assert walk.snapshot().progress == 50


def test_what_comes_after_a_failure_does_not_run_across_what_is_left_out() -> None:
    walk = Walk(DIAMOND, left_out=["b", "c"])
    walk.start()
    _fail(walk, "a")
    assert _started(walk) == ""


def test_a_flow_of_which_all_is_left_out_is_finished() -> None:
    walk = Walk(DIAMOND, left_out=DIAMOND.tasks)
    assert _started(walk) == ""
    assert (walk.snapshot().progress, walk.snapshot().description) == (100, "Test finished")


def test_the_description_names_what_runs() -> None:
    walk = Walk(DIAMOND)
    assert (walk.snapshot().progress, walk.snapshot().description) == (0, "Starting Test")
    walk.start()
    assert walk.snapshot().description == "A"
    _end(walk, "a")
    walk.start()
    assert (walk.snapshot().progress, walk.snapshot().description) == (25, "B, C")
    _end(walk, "b", "c")
    walk.start()
    _end(walk, "d")
    assert (walk.snapshot().progress, walk.snapshot().description) == (100, "Test finished")


@pytest.mark.parametrize(
    ("failed", "text"),
    [
        (["b"], '1 error occurred:\n\t* task "B" failed: no\n\n'),
        (["c", "b"], '2 errors occurred:\n\t* task "B" failed: no\n\t* task "C" failed: no\n\n'),
    ],
)
def test_errors_are_listed_in_the_order_of_the_table(failed: list[str], text: str) -> None:
    walk = Walk(DIAMOND)
    walk.start()
    _end(walk, "a")
    walk.start()
    for each in failed:
        _fail(walk, each)
    error = FlowFailed(walk.snapshot())
    assert error.as_list == text
    names = ", ".join(f'task "{each.upper()}" failed: no' for each in sorted(failed))
    assert str(error) == f'flow "Test" encountered task errors: [{names}]'
