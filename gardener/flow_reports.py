"""Reports of a gardenlet on a flow: its tasks, their times, the objects they wait for, and advice on errors.

The gardenlet makes reports; its page, JSON and `kubectl gardener flow` show them. All times are seconds from the start
of the flow, so that they do not depend on the clock of the reader.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gardener import error_codes
from kube.clock import short_duration
from kube.objects import Key, Object, mappings, text, texts

_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_MOST_TICKS = 8


class State(StrEnum):
    """State of a task; a flow has all but the first and the last."""

    WAITING = "Waiting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELED = "Canceled"
    NOT_STARTED = "NotStarted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """An object that a task waits for. Attributes: since: start of the wait. reason: what is missing."""

    kind: str
    key: Key
    since: float
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} {self.key}: {self.reason}"

    def data(self) -> dict[str, Any]:
        name = {"kind": self.kind, "namespace": self.key.namespace, "name": self.key.name}
        return {**name, "since": round(self.since, 3), "reason": self.reason}

    @classmethod
    def of(cls, data: Object) -> "Awaited":
        return cls(
            kind=text(data.get("kind")),
            key=Key(text(data.get("namespace")), text(data.get("name"))),
            since=_number(data.get("since")),
            reason=text(data.get("reason")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """A task of a flow.

    Attributes:
        begin: start; None if it has not started.
        seconds: run time until now.
        attempts: number of attempts.
        after: names of the tasks that it waits for; of one that has started, the task that was awaited last.
        reason: what it waits for while it runs, or waited for last.
        awaited: the objects that it waits for.
        error: of its last attempt.
    """

    id: str
    name: str
    state: State
    begin: float | None = None
    seconds: float = 0.0
    attempts: int = 0
    after: Sequence[str] = ()
    reason: str = ""
    awaited: Sequence[Awaited] = ()
    error: str = ""
    codes: Sequence[str] = ()

    @property
    def remedy(self) -> str:
        """Advice on its error; empty if there is none."""
        return error_codes.remedy(self.codes) if self.state is State.FAILED else ""

    @property
    def why(self) -> str:
        """Description of its present or past wait."""
        after = ", ".join(self.after)
        match self.state:
            case State.WAITING:
                return f"waits for {after}"
            case State.NOT_STARTED:
                return f"not started: {after} did not succeed" if after else "not started"
            case State.RUNNING:
                return "; ".join(map(str, self.awaited)) or self.reason
        waited = f"waited for: {self.reason}" if self.reason else ""
        return "; ".join(filter(None, (f"after {after}" if after else "", waited)))

    def data(self) -> dict[str, Any]:
        begin = {} if self.begin is None else {"begin": round(self.begin, 3), "seconds": round(self.seconds, 3)}
        texts_ = {"reason": self.reason, "error": self.error, "remedy": self.remedy}
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state.value,
            **begin,
            "attempts": self.attempts,
            "after": list(self.after),
            **{name: value for name, value in texts_.items() if value},
            **({"awaited": [each.data() for each in self.awaited]} if self.awaited else {}),
            **({"codes": list(self.codes)} if self.codes else {}),
        }

    @classmethod
    def of(cls, data: Object) -> "TaskReport":
        begin = data.get("begin")
        return cls(
            id=text(data.get("id")),
            name=text(data.get("name")),
            state=_state(data),
            begin=None if begin is None else _number(begin),
            seconds=_number(data.get("seconds")),
            attempts=int(_number(data.get("attempts"))),
            after=texts(data.get("after")),
            reason=text(data.get("reason")),
            awaited=[Awaited.of(each) for each in mappings(data.get("awaited"))],
            error=text(data.get("error")),
            codes=texts(data.get("codes")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReport:
    """A flow and its tasks.

    Attributes:
        began: in the form of the API.
        seconds: run time until now.
        tasks: all that are not left out, each after its predecessors.
    """

    flow: str
    state: State
    began: str
    seconds: float
    tasks: Sequence[TaskReport]

    @property
    def succeeded(self) -> int:
        return sum(each.state is State.SUCCEEDED for each in self.tasks)

    def data(self) -> dict[str, Any]:
        return {
            "flow": self.flow,
            "state": self.state.value,
            "began": self.began,
            "seconds": round(self.seconds, 3),
            "tasks": [each.data() for each in self.tasks],
        }

    @classmethod
    def of(cls, data: Object) -> "FlowReport":
        return cls(
            flow=text(data.get("flow")),
            state=_state(data),
            began=text(data.get("began")),
            seconds=_number(data.get("seconds")),
            tasks=[TaskReport.of(each) for each in mappings(data.get("tasks"))],
        )


def _state(data: Object) -> State:
    try:
        return State(text(data.get("state")))
    except ValueError:
        return State.WAITING


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


# --- the picture


def duration(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 10 and seconds != int(seconds) else short_duration(seconds)


@dataclass(frozen=True, slots=True)
class Bar:
    """Bar of a task, in whole units of the width of the picture; width 0 if the task has not started."""

    task: TaskReport
    left: int
    width: int


def bars(report: FlowReport, *, width: int, least: int = 1) -> list[Bar]:
    """The tasks over time, in the order of their starts; then those that have not started.

    Args: width: of the whole picture. least: the width of a task that took no time.
    """

    def order(task: TaskReport) -> tuple[bool, float]:
        return task.begin is None, task.begin or 0.0

    return [_bar(each, _span(report), width, least) for each in sorted(report.tasks, key=order)]


def _bar(task: TaskReport, span: float, width: int, least: int) -> Bar:
    if task.begin is None:
        return Bar(task, 0, 0)
    left = min(max(round(task.begin / span * width), 0), width - least)
    right = min(max(round((task.begin + task.seconds) / span * width), left + least), width)
    return Bar(task, left, right - left)


def _span(report: FlowReport) -> float:
    ends: Iterable[float] = (each.begin + each.seconds for each in report.tasks if each.begin is not None)
    return max(report.seconds, *ends, 0.001)


def ticks(report: FlowReport) -> list[int]:
    """Round numbers of seconds for the axis, a few of them."""
    span = _span(report)
    step = next((each for each in _TICKS if span / each <= _MOST_TICKS), _TICKS[-1])
    return [step * number for number in range(min(int(span // step), _MOST_TICKS) + 1)]
