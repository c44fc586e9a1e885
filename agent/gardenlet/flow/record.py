"""What is remembered of flows: of each object the one that runs, and the last one that ended. Pure.

    recording = records.begin(Subject("Seed", Key("", "meadow")), GRAPH, left_out)
    recording.start("crds"); recording.end("crds"); recording.close(State.SUCCEEDED)
    records.find(subject)

The memory is bounded: by the number of objects, by the length of texts, and by the size of all flows that have ended.
The oldest are forgotten first. Names of tasks are those of the graph, and cost nothing.
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
"""Of flows that have ended."""
_LONGEST_REASON = 500
_LONGEST_ERROR = 2000
_MOST_ERRORS = 32 << 10
"""Characters of all errors of a flow; what comes then is cut short."""
_LEAST_ERROR = 100
_MOST_CODES, _LONGEST_CODE = 5, 50
_MOST_OBJECTS_OF_A_TASK = 5
_TASK_BYTES = 250


class Subject(NamedTuple):
    """The object that a flow is about."""

    kind: str
    key: Key


@dataclass(slots=True)
class _Entry:
    state: State = State.WAITING
    begin: float | None = None
    end: float | None = None
    attempts: int = 0
    awaited: str = ""
    """The task before it that ended last."""
    reason: str = ""
    objects: dict[tuple[str, Key], tuple[float, str]] = field(default_factory=dict)
    """Those that it waits for, by kind and name: since when, and why."""
    error: str = ""
    codes: tuple[str, ...] = ()


class Recording:
    """Of one flow; all by IDs of tasks. Args: now: seconds that only grow."""

    def __init__(
        self, graph: Graph[Any], left_out: Collection[str], *, began: datetime, now: Callable[[], float]
    ) -> None:
        self._graph, self._left_out, self._now = graph, frozenset(left_out), now
        self._began, self._origin = began, now()
        self._state, self._seconds = State.RUNNING, 0.0
        self._entries = {each: _Entry() for each in graph.order if each not in left_out}

    # --- writing

    def start(self, task: str) -> None:
        entry = self._entries[task]
        entry.state, entry.begin, entry.attempts = State.RUNNING, self._elapsed(), 1
        entry.awaited = max(self._before(task), key=lambda each: self._entries[each].end or 0.0, default="")

    def wait(self, task: str, reason: str) -> None:
        """Notes what a running task waits for."""
        self._entries[task].reason = _cut(reason, _LONGEST_REASON)

    def wait_for(self, task: str, kind: str, name: Key, reason: str) -> None:
        """Notes an object that a running task waits for, until it `has` that."""
        entry, said = self._entries[task], _cut(reason, _LONGEST_REASON)
        entry.reason = _cut(f"{kind} {name}: {reason}", _LONGEST_REASON)
        if (kind, name) in entry.objects or len(entry.objects) < _MOST_OBJECTS_OF_A_TASK:
            since, _ = entry.objects.get((kind, name), (self._elapsed(), ""))
            entry.objects[kind, name] = since, said

    def has(self, task: str, kind: str, name: Key) -> None:
        self._entries[task].objects.pop((kind, name), None)

    def retry(self, task: str, error: str) -> None:
        """Notes another attempt, and why."""
        entry = self._entries[task]
        entry.attempts += 1
        entry.reason = _cut(f"the next attempt, after: {error}", _LONGEST_REASON)

    def end(self, task: str, *, error: str = "", codes: Collection[str] = ()) -> float:
        """Returns for how long the task ran."""
        entry = self._entries[task]
        entry.state, entry.end = State.FAILED if error else State.SUCCEEDED, self._elapsed()
        left = _MOST_ERRORS - sum(len(each.error) for each in self._entries.values())
        entry.error = _cut(error, min(max(left, _LEAST_ERROR), _LONGEST_ERROR))
        entry.codes = tuple(_cut(each, _LONGEST_CODE) for each in islice(codes, _MOST_CODES))
        return entry.end - (entry.begin or 0.0)

    def close(self, state: State) -> float:
        """The flow has ended: what still ran is cancelled, and nothing else starts. Returns seconds that it took."""
        self._state, self._seconds = state, self._elapsed()
        for each in self._entries.values():
            if each.state is State.RUNNING:
                each.state, each.end = State.CANCELED, self._seconds
            elif each.state is State.WAITING:
                each.state = State.NOT_STARTED
        return self._seconds

    # --- reading

    @property
    def is_running(self) -> bool:
        return self._state is State.RUNNING

    @property
    def size(self) -> int:
        """Bytes, about."""
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
        """The tasks that come before it; of one that is left out, those before that."""
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
    """Of one object."""

    running: Recording | None = None
    last: Recording | None = None

    @property
    def newest(self) -> Recording | None:
        return self.running or self.last


@dataclass(eq=False, slots=True, kw_only=True)
class FlowRecords:
    """Args: most_bytes: of flows that have ended. now: seconds that only grow. clock: the time of day."""

    most_objects: int = MOST_OBJECTS
    most_bytes: int = MOST_BYTES
    now: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = utc_now
    _flows: dict[Subject, Flows] = field(default_factory=dict, init=False)
    """Those that began last are last."""

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
        """Those that began last are first."""
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
    """What has ended is the last one."""
    if flows.running is not None and not flows.running.is_running:
        flows.last, flows.running = flows.running, None
