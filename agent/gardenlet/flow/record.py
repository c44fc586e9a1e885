"""Records of flows: for each object the running flow, and the last finished one. Pure.

    recording = records.begin(Subject("Seed", Key("", "meadow")), GRAPH, left_out)
    recording.start("crds"); recording.end("crds"); recording.close(State.SUCCEEDED)
    records.find(subject)

Memory is limited by the number of objects, by the length of texts, and by the size of all finished flows. The oldest
are dropped first. Names of tasks are those of the graph, and cost nothing.
"""

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from agent.gardenlet.flow.graph import Graph
from gardener.flow_reports import Awaited, FlowReport, State, TaskReport
from kube.clock import format_time, utc_now
from kube.objects import Key

MOST_OBJECTS = 500
MOST_BYTES = 4 << 20
"""Size of all finished flows."""
_LONGEST_REASON = 500
_LONGEST_ERROR = 2000
_MOST_ERRORS = 32 << 10
"""Characters of all errors of a flow; further errors are truncated."""
_LEAST_ERROR = 100
_MOST_CODES, _LONGEST_CODE = 5, 50
_MOST_OBJECTS_OF_A_TASK = 5
_TASK_BYTES = 250


class Subject(NamedTuple):
    """The object of a flow."""

    kind: str
    key: Key


@dataclass(slots=True)
class _Entry:
    state: State = State.WAITING
    begin: float | None = None
    end: float | None = None
    attempts: int = 0
    awaited: str = ""
    """The predecessor that ended last."""
    reason: str = ""
    objects: dict[tuple[str, Key], tuple[float, str]] = field(default_factory=dict)
    """Objects that the task waits for, by kind and name: since when, and why."""
    error: str = ""
    codes: tuple[str, ...] = ()


class Recording:
    """Record of one flow; tasks by ID.

    Args:
        now: monotonic seconds.
    """

    def __init__(
        self, graph: Graph[Any], left_out: Collection[str], *, began: datetime, now: Callable[[], float]
    ) -> None:
        self._graph, self._left_out, self._now = graph, frozenset(left_out), now
        self._began, self._origin = began, now()
        self._state, self._seconds = State.RUNNING, 0.0
        self._entries = {each: _Entry() for each in graph.order if each not in left_out}

    # --- recording

    def start(self, task: str) -> None:
        entry = self._entries[task]
        entry.state, entry.begin, entry.attempts = State.RUNNING, self._elapsed(), 1
        entry.awaited = max(self._before(task), key=lambda each: self._entries[each].end or 0.0, default="")

    def wait(self, task: str, reason: str) -> None:
        """Record the reason why a running task waits."""
        self._entries[task].reason = _cut(reason, _LONGEST_REASON)

    def wait_for(self, task: str, kind: str, name: Key, reason: str) -> None:
        """Record an object that a running task waits for, until `has` is called."""
        entry, reported = self._entries[task], _cut(reason, _LONGEST_REASON)
        entry.reason = _cut(f"{kind} {name}: {reason}", _LONGEST_REASON)
        if (kind, name) in entry.objects or len(entry.objects) < _MOST_OBJECTS_OF_A_TASK:
            since, _ = entry.objects.get((kind, name), (self._elapsed(), ""))
            entry.objects[kind, name] = since, reported

    def has(self, task: str, kind: str, name: Key) -> None:
        self._entries[task].objects.pop((kind, name), None)

    def retry(self, task: str, error: str) -> None:
        """Record another attempt, and its reason."""
        entry = self._entries[task]
        entry.attempts += 1
        entry.reason = _cut(f"the next attempt, after: {error}", _LONGEST_REASON)

    def end(self, task: str, *, error: str = "", codes: Collection[str] = ()) -> float:
        """Record the end of a task; return its duration in seconds."""
        entry = self._entries[task]
        entry.state, entry.end = State.FAILED if error else State.SUCCEEDED, self._elapsed()
        left = _MOST_ERRORS - sum(len(each.error) for each in self._entries.values())
        entry.error = _cut(error, min(max(left, _LEAST_ERROR), _LONGEST_ERROR))
        entry.codes = tuple(_cut(each, _LONGEST_CODE) for each in islice(codes, _MOST_CODES))
        return entry.end - (entry.begin or 0.0)

    def close(self, state: State) -> float:
        """End the flow: running tasks become cancelled, others are not started. Return its duration in seconds."""
        self._state, self._seconds = state, self._elapsed()
        for each in self._entries.values():
            if each.state is State.RUNNING:
                each.state, each.end = State.CANCELED, self._seconds
            elif each.state is State.WAITING:
                each.state = State.NOT_STARTED
        return self._seconds

    # --- reports

    @property
    def is_running(self) -> bool:
        return self._state is State.RUNNING

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        texts = sum(len("".join((each.error, each.reason, *each.codes))) for each in self._entries.values())
        objects = [reason for each in self._entries.values() for _, reason in each.objects.values()]
        return _TASK_BYTES * (len(self._entries) + len(objects)) + texts + sum(map(len, objects))

    def report(self) -> FlowReport:
        return FlowReport(
            flow=self._graph.name,
            state=self._state,
            began=format_time(self._began),
            seconds=self._until(),
            tasks=[self._task(each, entry) for each, entry in self._entries.items()],
        )

    def _task(self, task: str, entry: _Entry) -> TaskReport:
        if entry.begin is None:
            after = [each for each in self._before(task) if self._entries[each].state is not State.SUCCEEDED]
        else:
            after = [entry.awaited] if entry.awaited else []
        end = self._until() if entry.end is None else entry.end
        return TaskReport(
            id=task,
            name=self._graph.tasks[task].name,
            state=entry.state,
            begin=entry.begin,
            seconds=0.0 if entry.begin is None else end - entry.begin,
            attempts=entry.attempts,
            after=[self._graph.tasks[each].name for each in after],
            reason=entry.reason,
            awaited=[
                Awaited(kind=kind, key=name, since=since, reason=reason)
                for (kind, name), (since, reason) in entry.objects.items()
            ],
            error=entry.error,
            codes=entry.codes,
        )

    def _before(self, task: str) -> list[str]:
        """Predecessors of a task; a skipped one is replaced by its own predecessors."""
        found = dict[str, None]()
        for each in self._graph.tasks[task].after:
            found |= dict.fromkeys(self._before(each) if each in self._left_out else [each])
        return list(found)

    def _elapsed(self) -> float:
        return self._now() - self._origin

    def _until(self) -> float:
        return self._elapsed() if self.is_running else self._seconds


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


@dataclass(slots=True)
class Flows:
    """Flows of one object."""

    running: Recording | None = None
    last: Recording | None = None

    @property
    def newest(self) -> Recording | None:
        return self.running or self.last


@dataclass(eq=False, slots=True, kw_only=True)
class FlowRecords:
    """Records of all objects.

    Args:
        most_bytes: size of all finished flows.
        now: monotonic seconds.
        clock: wall-clock time.
    """

    most_objects: int = MOST_OBJECTS
    most_bytes: int = MOST_BYTES
    now: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = utc_now
    _flows: dict[Subject, Flows] = field(default_factory=dict, init=False)
    """Flows in the order of their start."""

    def begin(self, subject: Subject, graph: Graph[Any], left_out: Collection[str]) -> Recording:
        flows = self._flows.pop(subject, None) or Flows()
        _settle(flows)
        flows.running = Recording(graph, left_out, began=self.clock(), now=self.now)
        self._flows[subject] = flows
        self._forget()
        return flows.running

    def find(self, subject: Subject) -> Flows | None:
        flows = self._flows.get(subject)
        if flows is not None:
            _settle(flows)
        return flows

    def all(self) -> Iterator[tuple[Subject, Flows]]:
        """Yield flows, latest start first."""
        for subject, flows in reversed(self._flows.items()):
            _settle(flows)
            yield subject, flows

    def _forget(self) -> None:
        for flows in self._flows.values():
            _settle(flows)
        size = sum(each.last.size for each in self._flows.values() if each.last is not None)
        for subject in list(self._flows):
            flows = self._flows[subject]
            if len(self._flows) <= self.most_objects and size <= self.most_bytes:
                return
            size -= flows.last.size if flows.last is not None else 0
            flows.last = None
            if flows.running is None or len(self._flows) > self.most_objects:
                del self._flows[subject]


def _settle(flows: Flows) -> None:
    """Move a finished flow from `running` to `last`."""
    if flows.running is not None and not flows.running.is_running:
        flows.last, flows.running = flows.running, None
