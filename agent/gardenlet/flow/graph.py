"""A flow, and one walk through it: pure; `run` executes it.

    FLOW = Graph("Seed reconciliation", [
        Task("crds", "Deploying custom resource definitions", deploy_crds),
        Task("system", "Deploying system resources", deploy_system, after=["crds"], unless=is_left_out),
    ])

A graph is created when its module is imported, so an invalid table fails at the start. Skipped tasks are determined
once, from the operation, before the first task starts.

A skipped task is done as soon as all its predecessors are, so order holds across it. A failed task stops only its
direct and indirect dependents.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any, Generic, TypeVar

from components.results import Result
from gardener.operations import PROGRAM_ENDED

O = TypeVar("O")  # noqa: E741 - the operation: the input of a flow's tasks
_STEP = re.compile(rf"[^:]*\b\d{{1,3}} %$|{PROGRAM_ENDED}.*", re.DOTALL)
"""The part of a reason that the description shows: measured progress, or the last error of a program that has ended."""
_LONGEST_STEP = 500


@dataclass(frozen=True, slots=True)
class Retry:
    """Retries of a failed task. Only pauses count; the duration of an attempt does not."""

    every: float = 5.0
    within: float = 30.0

    @property
    def pauses(self) -> int:
        return int(self.within // self.every)


USUAL = Retry()
ONCE = Retry(within=0.0)
"""No retries: for tasks that wait with their own time limits."""
LONG = Retry(within=600.0)
"""More retries, in case many objects are written."""


@dataclass(frozen=True)  # slots would prevent Python from storing generic type arguments on instances
class Task(Generic[O]):
    id: str
    """ID that other tasks of the table refer to."""
    name: str
    """Name for users: in descriptions, in errors, and as `taskID`."""
    run: Callable[[O], Awaitable[Any]]
    after: Collection[str] = ()
    unless: Callable[[O], bool] | None = None
    """Whether to skip the task."""
    retry: Retry = USUAL
    provides: Result[Any] | None = None
    """Result of `run`, for later tasks."""
    reads: Collection[Result[Any]] = ()
    """Results of earlier tasks; its own one if it updates that."""


class GraphError(ValueError):
    """The table of a flow is invalid."""


class Graph(Generic[O]):
    """A flow.

    Args:
        name: shown to users.

    Raises:
        GraphError: the table is invalid; the error lists all problems.
    """

    def __init__(self, name: str, tasks: Sequence[Task[O]]) -> None:
        problems = list(_problems(tasks))
        if problems:
            raise GraphError(f"flow {name!r}: {'; '.join(problems)}")
        self.name = name
        self.tasks = {task.id: task for task in tasks}
        self.order = tuple(TopologicalSorter({task.id: task.after for task in tasks}).static_order())
        """IDs in topological order."""

    def left_out(self, operation: O) -> frozenset[str]:
        return frozenset(each.id for each in self.tasks.values() if each.unless is not None and each.unless(operation))


def _problems(tasks: Sequence[Task[O]]) -> Iterator[str]:
    ids, names = [task.id for task in tasks], [task.name for task in tasks]
    for what, texts in (("ID", ids), ("name", names)):
        for each in sorted({each for each in texts if texts.count(each) > 1}):
            yield f"more than one task has the {what} {each!r}"
    is_complete = True
    for task in tasks:
        for each in sorted(set(task.after).difference(ids)):
            is_complete = False
            yield f"task {task.id!r} comes after {each!r}, which is not a task"
    if is_complete:
        try:
            TopologicalSorter({task.id: task.after for task in tasks}).prepare()
        except CycleError as error:
            yield f"tasks wait for each other: {' -> '.join(reversed(error.args[1]))}"
        else:
            yield from _problems_of_results(tasks)


def _problems_of_results(tasks: Sequence[Task[O]]) -> Iterator[str]:
    """Problems of order: no task may provide a result while another one provides or reads it."""
    before = _predecessors(tasks)

    def in_order(one: Task[O], other: Task[O]) -> bool:
        return one is other or one.id in before[other.id] or other.id in before[one.id]

    for result in dict.fromkeys(each.provides for each in tasks if each.provides is not None):
        providers = [each for each in tasks if each.provides is result]
        readers = [each for each in tasks if result in each.reads and each not in providers]
        for provider, other in product(providers, [*providers, *readers]):
            if not in_order(provider, other):
                yield f"task {other.id!r} has no order with {provider.id!r}, which provides {result.name!r}"
        for each in readers:
            if before[each.id].isdisjoint(provider.id for provider in providers):
                yield f"task {each.id!r} reads {result.name!r} before it is provided"


def _predecessors(tasks: Sequence[Task[O]]) -> dict[str, set[str]]:
    """Direct and indirect predecessors of each task."""
    after = {each.id: each.after for each in tasks}
    found = dict[str, set[str]]()
    for each in TopologicalSorter(after).static_order():
        found[each] = set(after[each]).union(*(found[one] for one in after[each]))
    return found


@dataclass(frozen=True, slots=True)
class TaskFailure:
    task: str
    """Name of the task."""
    error: Exception
    text: str

    def __str__(self) -> str:
        return f'task "{self.task}" failed: {self.text}'


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Progress of a flow; tasks by name."""

    flow: str
    total: int
    succeeded: frozenset[str]
    running: frozenset[str]
    failures: tuple[TaskFailure, ...]
    """Failures in the order of the table."""
    failed_before: frozenset[str]
    """Tasks that failed in the previous run, and have not succeeded since."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """News of the object that a running task waits for: `building it, 40 %`, or the last error of its program."""

    @property
    def progress(self) -> int:
        return 100 * len(self.succeeded) // self.total if self.total else 100

    @property
    def ended(self) -> Mapping[str, str]:
        """Last errors of programs that running tasks wait for."""
        return {task: step for task, step in self.steps.items() if step.startswith(PROGRAM_ENDED)}

    @property
    def troubled(self) -> frozenset[str]:
        """Tasks with an error while the flow runs."""
        return self.failed_before.union(self.ended)

    @property
    def description(self) -> str:
        """Description, never empty: when nothing runs any more, the failed tasks."""
        if len(self.succeeded) == self.total:
            return f"{self.flow} finished"
        names = self.running or {each.task for each in self.failures}
        shown = (f"{each} ({self.steps[each]})" if each in self.steps else each for each in sorted(names))
        return ", ".join(shown) or f"Starting {self.flow}"


class Walk(Generic[O]):
    """One run of a graph: startable tasks, and the results of finished ones.

    Args:
        left_out: IDs of skipped tasks.
        failed_before: names of tasks that failed in the previous run.
    """

    def __init__(self, graph: Graph[O], *, left_out: Collection[str] = (), failed_before: Collection[str] = ()) -> None:
        self._graph = graph
        self._left_out = frozenset(left_out)
        self._failed_before = frozenset(failed_before)
        self._waiting = dict.fromkeys(graph.order)
        self._done = set[str]()
        self._running = set[str]()
        self._failures: dict[str, TaskFailure] = {}
        self._steps: dict[str, str] = {}

    @property
    def flow(self) -> str:
        return self._graph.name

    def start(self) -> list[Task[O]]:
        """Return the tasks that may start now; they count as running."""
        startable = []
        for each in list(self._waiting):
            task = self._graph.tasks[each]
            if not self._done.issuperset(task.after):
                continue
            del self._waiting[each]
            if each in self._left_out:
                self._done.add(each)
            else:
                self._running.add(each)
                startable.append(task)
        return startable

    def end(self, task: Task[O], failure: TaskFailure | None = None) -> None:
        """Record the result of a running task."""
        self._running.remove(task.id)
        self._steps.pop(task.id, None)
        if failure is None:
            self._done.add(task.id)
        else:
            self._failures[task.id] = failure

    def note(self, task: str, reason: str) -> bool:
        """Record the reason why a task waits; return whether the part of it that is shown has changed."""
        before = self._steps.pop(task, None)
        if found := _STEP.search(reason):
            self._steps[task] = found[0].strip()[:_LONGEST_STEP]
        return self._steps.get(task) != before

    def snapshot(self) -> Snapshot:
        succeeded = self._names(self._done - self._left_out)
        return Snapshot(
            flow=self._graph.name,
            total=len(self._graph.tasks.keys() - self._left_out),
            succeeded=succeeded,
            running=self._names(self._running),
            failures=tuple(self._failures[each] for each in self._graph.tasks if each in self._failures),
            failed_before=self._failed_before - succeeded,
            steps={self._graph.tasks[each].name: step for each, step in self._steps.items()},
        )

    def _names(self, ids: Collection[str]) -> frozenset[str]:
        return frozenset(self._graph.tasks[each].name for each in ids)
