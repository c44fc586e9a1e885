"""Execution of a flow.

    await run(FLOW, operation, on_change=progress.report)

Any number of tasks run in parallel. A failed task is retried if that may help: only pauses count towards its limit,
since an attempt may generate keys, wait for its turn at the client, or for something with its own limit. A request
that timed out has waited longer than all attempts may, so it is not repeated, and neither is a wait for an object.

A conflict with another writer is no failure: writers limit themselves to their own fields or try again where it occurs,
and if that was in vain, the task begins again a moment later, which is not reported.

`waits_for` and `awaiting` record the reason why a task waits, from any code that it calls; it becomes part of the
flow's record, if there is one.

However a flow ends, none of its tasks continues: they are cancelled, and get some seconds to unwind.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import structlog

from agent.gardenlet.flow.graph import Graph, O, Snapshot, Task, TaskFailure, Walk
from agent.gardenlet.flow.metrics import gardenlet_flow_duration_seconds, gardenlet_flow_task_duration_seconds
from agent.gardenlet.flow.record import FlowRecords, Recording, Subject
from components.results import Results, only
from gardener.flow_reports import State
from kube.clock import format_duration
from kube.errors import KubeError, TimedOut
from kube.objects import Key
from kube.runtime.controller import ReconcileError, TerminalError, failure_of, is_conflict
from kube.runtime.handing_over import waits
from kube.runtime.waiting import NotInTimeError

_UNWIND_SECONDS = (3.0, 1.0)
"""Seconds after the first and the second cancellation; less than a stopping controller grants its passes."""

_AFTER_CONFLICTS = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Pauses in seconds, after which a task begins again that met a conflict."""

Sleep = Callable[[float], Awaitable[None]]
Note = Callable[[str, str], None]
_Execute = Callable[[Task[O]], Awaitable[None]]
_place: ContextVar[tuple[Recording, str, Note] | None] = ContextVar("place", default=None)
"""The record of the flow, the task in which this code runs, and a function that takes a task and its reason to wait."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class FlowFailed(ReconcileError):
    """One or more tasks failed; their dependents were skipped."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(f'flow "{snapshot.flow}" encountered task errors: [{", ".join(map(str, snapshot.failures))}]')
        self.snapshot = snapshot

    @property
    def as_list(self) -> str:
        """Errors as a list of lines, which ends with an empty one."""
        failures = self.snapshot.failures
        head = "1 error occurred:" if len(failures) == 1 else f"{len(failures)} errors occurred:"
        return "\n".join([head, *(f"\t* {each}" for each in failures), "\n"])


class FlowCanceled(ReconcileError):
    """The flow ran out of time."""

    def __init__(self, snapshot: Snapshot, *, limit: float) -> None:
        super().__init__(
            f'flow "{snapshot.flow}" was canceled: it took longer than {format_duration(limit)}; unfinished:'
            f" {snapshot.description}"
        )
        self.snapshot = snapshot


def waits_for(reason: str) -> None:
    """Record the reason why the current task waits; no-op outside of flows."""
    if (place := _place.get()) is not None:
        recording, task, _ = place
        recording.wait(task, reason)


@contextmanager
def awaiting(kind: str, name: Key) -> Iterator[Callable[[str], None]]:
    """Record a wait for an object in the current task; yields a function that records the reason."""
    place = _place.get()
    if place is None:
        yield lambda _: None
        return
    recording, task, note = place

    def record(reason: str) -> None:
        recording.wait_for(task, kind, name, reason)
        note(task, reason)

    try:
        yield record
    finally:
        recording.has(task, kind, name)


async def run(
    graph: Graph[O],
    operation: O,
    *,
    results: Results | None = None,
    on_change: Callable[[Snapshot], None] = lambda _: None,
    failed_before: Collection[str] = (),
    limit: float | None = None,
    record: tuple[FlowRecords, Subject] | None = None,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Run a flow until all tasks have succeeded; `on_change` is called whenever tasks have started or ended.

    `results` receives those of the tasks, `failed_before` has the names of the tasks that failed in the previous run,
    `limit` the time limit in seconds, and `record` the destination and the object of the record.

    Raises:
        FlowFailed: tasks failed.
        FlowCanceled: the time limit was exceeded.
    """
    left_out = graph.left_out(operation)
    walk = Walk(graph, left_out=left_out, failed_before=failed_before)
    records, subject = record or (FlowRecords(), Subject("", Key("", "")))
    recording = records.begin(subject, graph, left_out)
    execute = partial(carry_out, operation, results or Results())
    state = State.CANCELED
    time = asyncio.timeout(limit)
    try:
        async with time:
            await _walk(walk, execute, recording, on_change=on_change, sleep=sleep)
        state = State.FAILED if walk.snapshot().failures else State.SUCCEEDED
    except TimeoutError:
        if limit is None or not time.expired():
            raise
        raise FlowCanceled(walk.snapshot(), limit=limit) from None
    finally:
        seconds = recording.close(state)
        if record is not None:  # a run without a record is a trial
            gardenlet_flow_duration_seconds.labels(flow=walk.flow, result=state.value).observe(seconds)
    if state is State.FAILED:
        raise FlowFailed(walk.snapshot())


async def _walk(
    walk: Walk[O], execute: _Execute[O], recording: Recording, *, on_change: Callable[[Snapshot], None], sleep: Sleep
) -> None:
    running: dict[asyncio.Task[None], Task[O]] = {}

    def note(task: str, reason: str) -> None:
        if walk.note(task, reason):
            on_change(walk.snapshot())

    try:
        while True:
            for task in walk.start():
                recording.start(task.id)
                attempt = _attempt(task, execute, recording, note, sleep=sleep)
                running[asyncio.create_task(attempt, name=task.name)] = task
            on_change(walk.snapshot())
            if not running:
                return
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                task = running.pop(each)
                failure = _failure(task, each)
                walk.end(task, failure)
                _record(recording, walk.flow, task, failure)
    finally:
        await _cancel(running)


def _record(recording: Recording, flow: str, task: Task[O], failure: TaskFailure | None) -> None:
    codes = getattr(failure.error, "codes", ()) if failure is not None else ()
    seconds = recording.end(task.id, error=failure.text or "failed" if failure is not None else "", codes=codes)
    gardenlet_flow_task_duration_seconds.labels(flow=flow, task=task.id).observe(seconds)


async def carry_out(operation: O, results: Results, task: Task[O]) -> None:
    """Run a task once, and keep its result."""
    with only(task.reads):
        result = await task.run(operation)
    if task.provides is not None:
        results.provide(task.provides, result)


async def _attempt(task: Task[O], execute: _Execute[O], recording: Recording, note: Note, *, sleep: Sleep) -> None:
    """Run a task, with retries if they may help, and raise the error of the last attempt."""
    _place.set((recording, task.id, note))
    for _ in range(task.retry.pauses):
        try:
            return await _beside_others(task, execute, sleep=sleep)
        except (KubeError, ReconcileError, OSError) as error:
            # A task may convert its cancellation to an error.
            if isinstance(error, TerminalError | TimedOut | NotInTimeError) or _is_cancelled():
                raise
            log.info("Retrying a task", task=task.name, error=str(error))
            recording.retry(task.id, str(error))
        with waits():
            await sleep(task.retry.every)
    return await _beside_others(task, execute, sleep=sleep)


async def _beside_others(task: Task[O], execute: _Execute[O], *, sleep: Sleep) -> None:
    """Run a task, again after conflicts with other writers, and raise any other error."""
    for pause in _AFTER_CONFLICTS:
        try:
            return await execute(task)
        except Exception as error:
            if not is_conflict(error) or _is_cancelled():
                raise
            log.info("Starting a task again after a concurrent write", task=task.name, error=str(error))
        with waits():
            await sleep(pause)
    return await execute(task)


def _failure(task: Task[O], ended: asyncio.Task[None]) -> TaskFailure | None:
    if ended.cancelled():
        error: BaseException | None = RuntimeError("cancelled from within")
    else:
        error = ended.exception()
    if error is None:
        return None
    if not isinstance(error, Exception):
        raise error
    failure = failure_of(error)
    log.error("A task failed", task=task.name, error=failure.text, exc_info=error if failure.is_panic else None)
    return TaskFailure(task.name, error, failure.text)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _cancel(running: Collection[asyncio.Task[None]]) -> None:
    """Cancel the tasks twice, since a task may continue after the first time."""
    stuck = set(running)
    for seconds in _UNWIND_SECONDS:
        if not stuck:
            return
        for each in stuck:
            each.cancel()
        _, stuck = await asyncio.wait(stuck, timeout=seconds)
    if stuck:
        log.error("Tasks did not stop in time", tasks=sorted(each.get_name() for each in stuck))
