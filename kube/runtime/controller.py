"""Control loop: workers that take keys from a queue and reconcile their objects.

A reconciliation is level based: it gets a key, looks at the state of the world, and returns when the key is due next.
Results are handled in one place, `Controller._settle`:

    Done()             fine; nothing until the key is added again
    RequeueAfter(s)    fine; again after s seconds, unless that is needless then
    Requeue()          incomplete; again after a growing delay
    an error raised    again after a growing delay, unless it is a TerminalError
    a conflict raised  the same as Requeue: another client has written meanwhile, which is no failure

Errors are `KubeError`, `ReconcileError` and those of the operating system; any other exception is a bug: it is counted
as a panic, logged with its traceback, and otherwise treated like an error. So is a pass that exceeds its time limit.
None of them ends a worker. A pass that waits gives its worker to namespaces that have none, see `handing_over`, and
runs again later.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import structlog

from kube.clock import format_duration
from kube.errors import AlreadyExists, Conflict, KubeError
from kube.objects import Key
from kube.resources import Resource
from kube.runtime import handing_over, tracing
from kube.runtime.handing_over import Pass
from kube.runtime.metrics import ControllerMetrics
from kube.runtime.priorities import RESYNC, Priority, any_priority
from kube.runtime.queue import QueueShutDownError, WorkQueue
from kube.runtime.yielding import Yielding

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_WAY_SECONDS = 1.0
"""Delay of a pass that has given way, in seconds."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do."""


@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """All is well so far; reconcile again after `seconds` (at once if zero or less)."""

    seconds: float
    priority: Priority | None = None
    """Priority of the next pass; None: the one of this pass."""
    is_needless: Callable[[], bool] | None = None
    """Called when a regular pass is due: whether it would find nothing new, and is delayed again by the same time."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Reconcile again, with a growing delay while this continues."""


Result = Done | RequeueAfter | Requeue


class ReconcileError(Exception):
    """A reconciliation failed for the reason in its message."""


class TerminalError(ReconcileError):
    """A failure that persists until the object changes, so that retries are pointless."""


class RepeatedError(ReconcileError):
    """A failure that was logged recently, and is not logged again; it counts like any other."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed reconciliation: the error, and its consequences."""

    error: Exception
    text: str
    is_panic: bool = False
    is_terminal: bool = False
    is_timeout: bool = False
    is_conflict: bool = False
    is_repeated: bool = False


def failure_of(error: Exception) -> Failure:
    """Classify an error; a group by the common properties of its members."""
    members = list(_members(error))
    bug = next((e for e in members if not isinstance(e, (KubeError, ReconcileError, OSError))), None)
    if bug is not None:
        return Failure(error, f"panic: {type(bug).__name__}: {bug} [recovered]", is_panic=True)
    text = "; ".join(str(e) or type(e).__name__ for e in members)
    is_terminal = all(isinstance(e, TerminalError) for e in members)
    is_repeated = all(isinstance(e, RepeatedError) for e in members)
    return Failure(error, text, is_terminal=is_terminal, is_conflict=is_conflict(error), is_repeated=is_repeated)


def is_conflict(error: BaseException) -> bool:
    """Whether the only cause is a concurrent write of another client.

    That includes a ReconcileError that was raised from a conflict, unless it is terminal.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_conflict, error.exceptions))
    if isinstance(error, ReconcileError) and not isinstance(error, TerminalError) and error.__cause__ is not None:
        return is_conflict(error.__cause__)
    return isinstance(error, Conflict) and not isinstance(error, AlreadyExists)


def _members(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for member in error.exceptions:
            yield from _members(member)
    else:
        yield error


class Controller:
    """Reconciles the keys that are added to its `queue`, each by one worker at a time.

    Its metrics exist from its construction on, so construct it when it is going to run: on becoming leader.

    Args:
        name: of the controller, in metrics and logs.
        reconcile: one pass over the object of a key. Cancelled at the time limit and when the controller stops.
        kind: kind of the keys' objects, if it is the same for all; only for logs.
        concurrency: number of workers.
        time_limit: seconds that one pass may take.
        max_backoff: maximum of seconds between attempts that keep failing.
        highest: see `WorkQueue`.
        stop_within: seconds that running passes get to unwind when the controller stops.
        is_repeatable: whether nothing is lost if a pass ends while a request has no answer, see `handing_over`.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[Key], Awaitable[Result]],
        *,
        kind: Resource | None = None,
        concurrency: int = 1,
        time_limit: float = 180.0,
        max_backoff: float = 1000.0,
        highest: Callable[[Key], Priority] = any_priority,
        stop_within: float = 5.0,
        is_repeatable: bool = False,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[Key] = WorkQueue(
            name,
            workers=concurrency,
            flow=_flow_of,
            highest=highest,
            put_off=self._put_off,
            give_way=self._give_way,
            max_backoff=max_backoff,
        )
        self._reconcile = reconcile
        self._kind = kind
        self._concurrency = concurrency
        self._time_limit = time_limit
        self._stop_within = stop_within
        self._is_repeatable = is_repeatable
        self._metrics = ControllerMetrics(name, workers=concurrency)
        self._yielding = Yielding()
        self._passes: dict[Key, Pass] = {}
        """Running passes."""
        self._regular: dict[Key, RequeueAfter] = {}
        """Last results of keys whose next regular pass may turn out to be needless."""

    async def run(self) -> None:
        """Work until cancelled. Then no more keys are taken, and running reconciliations are cancelled."""
        log.info("Starting workers", controller=self.name, **{"worker count": self._concurrency})
        workers = [
            asyncio.create_task(self._work(), name=f"{self.name} worker {number}")
            for number in range(self._concurrency)
        ]
        try:
            # Unlike gather, wait returns at once when it is cancelled, so that the bound below holds.
            ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in ended:
                worker.result()
        finally:
            self.queue.shut_down()
            for worker in workers:
                worker.cancel()
            _, stuck = await asyncio.wait(workers, timeout=self._stop_within)
            if stuck:
                log.error("Reconciliations did not stop in time", controller=self.name, count=len(stuck))

    async def _work(self) -> None:
        # Each worker is a task with a logging context of its own, so nothing needs to be unbound.
        structlog.contextvars.bind_contextvars(controller=self.name)
        if self._kind is not None:
            structlog.contextvars.bind_contextvars(controllerGroup=self._kind.group, controllerKind=self._kind.kind)
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDownError:
                return
            try:
                self._regular.pop(key, None)
                await self._process(key)
            except Exception:
                log.exception("Cannot process the result of a reconciliation")
                self.queue.add_rate_limited(key)
            finally:
                self.queue.done(key)
            # Thousands of keys may cost little each, and need no request.
            await self._yielding.after_long()

    def _give_way(self, key: Key) -> bool:
        passing = self._passes.get(key)
        return passing is not None and passing.give_way()

    def _put_off(self, key: Key) -> float | None:
        """Seconds by which a needless regular pass is delayed; None: it takes place."""
        reported = self._regular.get(key)
        try:
            return (
                reported.seconds
                if reported is not None and reported.is_needless is not None and reported.is_needless()
                else None
            )
        except Exception:
            log.exception("Cannot check whether a reconciliation is required", controller=self.name)
            return None

    def _look_again(self, key: Key, reported: RequeueAfter) -> None:
        if reported.is_needless is not None:
            self._regular[key] = reported
        self.queue.add_after(key, reported.seconds, reported.priority)

    async def _process(self, key: Key) -> None:
        pass_id = str(uuid.uuid4())
        self._bind(key, pass_id)
        started = time.perf_counter()
        self._metrics.active_workers.inc()
        try:
            with tracing.reconcile(self.name, key, pass_id=pass_id) as span:
                outcome = await self._attempt(key)
                if span.is_recording():
                    _describe(span, outcome)
        finally:
            self._metrics.active_workers.dec()
            self._metrics.seconds.observe(time.perf_counter() - started)
        self._settle(key, outcome)

    def _bind(self, key: Key, pass_id: str) -> None:
        structlog.contextvars.bind_contextvars(namespace=key.namespace, name=key.name, reconcileID=pass_id)
        if self._kind is not None:
            reference = {"namespace": key.namespace, "name": key.name}
            structlog.contextvars.bind_contextvars(**{self._kind.kind: reference})

    async def _attempt(self, key: Key) -> Result | Failure:
        """One reconciliation; raises nothing but the cancellation of this worker."""
        limit = asyncio.timeout(self._time_limit)
        self._passes[key] = passing = handing_over.begin(limit, is_repeatable=self._is_repeatable)
        try:
            async with limit:
                return await self._reconcile(key)
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker is not None and worker.cancelling():
                raise
            # This worker was not cancelled: the reconciliation awaited something that was cancelled.
            return failure_of(RuntimeError("cancelled from within"))
        except Exception as error:  # noqa: BLE001 - no exception may end the worker
            if passing.gives_way and limit.expired():
                log.info("Retrying a waiting reconciliation later, to free a worker for other namespaces")
                return RequeueAfter(_WAY_SECONDS, RESYNC)
            if limit.expired():
                text = f"the reconciliation exceeded its time limit of {format_duration(self._time_limit)}"
                return Failure(error, text, is_timeout=True)
            return failure_of(error)
        finally:
            del self._passes[key]

    def _settle(self, key: Key, outcome: Result | Failure) -> None:
        if not isinstance(outcome, Failure):
            self._metrics.last_pass.set_to_current_time()
        match outcome:
            case Done():
                self._metrics.success.inc()
                self.queue.forget(key)
            case RequeueAfter():
                self._metrics.requeue_after.inc()
                self.queue.forget(key)
                self._look_again(key, outcome)
            case Requeue():
                self._metrics.requeue.inc()
                self.queue.add_rate_limited(key)
            case Failure(is_conflict=True):
                self._metrics.requeue.inc()
                log.info("Reconciling again after a concurrent write", error=outcome.text)
                self.queue.add_rate_limited(key)
            case Failure():
                self._count(outcome)
                traceback = {"exc_info": outcome.error} if outcome.is_panic else {}
                if not outcome.is_repeated:
                    log.error("Reconciler error", error=outcome.text, **traceback)
                if outcome.is_terminal:
                    self.queue.forget(key)
                else:
                    self.queue.add_rate_limited(key)
            case _:
                assert_never(outcome)

    def _count(self, failure: Failure) -> None:
        self._metrics.error.inc()
        self._metrics.errors.inc()
        if failure.is_terminal:
            self._metrics.terminal_errors.inc()
        if failure.is_panic:
            self._metrics.panics.inc()
        if failure.is_timeout:
            self._metrics.timeouts.inc()


_RESULTS = {Done: "success", RequeueAfter: "requeue_after", Requeue: "requeue", Failure: "error"}
"""Names in metrics."""


def _describe(span: "Span", outcome: Result | Failure) -> None:
    is_conflict = isinstance(outcome, Failure) and outcome.is_conflict
    span.set_attribute("reconcile.result", _RESULTS[Requeue if is_conflict else type(outcome)])
    if isinstance(outcome, Failure) and not is_conflict:
        tracing.fail(span, ",".join(sorted({type(error).__name__ for error in _members(outcome.error)})))


def _flow_of(key: Key) -> str | None:
    """Namespace of a key; None for keys without one, which belong to no flow."""
    return key.namespace or None
