"""What a controller makes of the outcome of a reconciliation."""

import asyncio
import contextlib
import itertools
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest
import structlog
from prometheus_client import REGISTRY
from structlog.testing import LogCapture

from agent.resource_manager.common.inputs import Inputs
from kit.eventually import soon
from kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Unreachable
from kube.objects import Key
from kube.resources import SECRETS
from kube.runtime.controller import (
    Controller,
    Done,
    ReconcileError,
    RepeatedError,
    Requeue,
    RequeueAfter,
    Result,
    TerminalError,
    failure_of,
)
from kube.runtime.priorities import REMOVAL, RESYNC, Priority

KEY = Key("default", "thing")
REFUSED = Forbidden(403, message="it may not be modified")
RESULTS = ("success", "requeue", "requeue_after", "error")


@pytest.fixture
def logs() -> Iterator[LogCapture]:
    capture = LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, capture])
    yield capture
    structlog.configure(processors=before)


@contextlib.asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def new_name() -> str:
    return f"controller-{uuid.uuid4()}"


def counted(controller: Controller, name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"controller_runtime_{name}", {"controller": controller.name, **labels})


def results(controller: Controller) -> dict[str, float | None]:
    counts = {kind: counted(controller, "reconcile_total", result=kind) for kind in RESULTS}
    return {kind: count for kind, count in counts.items() if count}


def retries(controller: Controller) -> float | None:
    """How often a key was added for a later time."""
    labels = {"name": controller.name, "controller": controller.name}
    return REGISTRY.get_sample_value("workqueue_retries_total", labels)


class Script:
    """A reconcile function that does what the test wrote down, one entry a call, and then is done."""

    def __init__(self, *steps: Result | BaseException | Callable[[], Awaitable[Result]]) -> None:
        self.steps = list(steps)
        self.calls: list[tuple[Key, float]] = []

    async def __call__(self, key: Key) -> Result:
        self.calls.append((key, time.monotonic()))
        step = self.steps.pop(0) if self.steps else Done()
        if isinstance(step, BaseException):
            raise step
        return await step() if callable(step) else step


async def run_script(script: Script, calls: int, **options: Any) -> Controller:
    """A controller after the script was called so many times for one key that was added once."""
    controller = Controller(new_name(), script, **options)
    async with running(controller):
        controller.queue.add(KEY)
        await soon(lambda: len(script.calls) >= calls and counted(controller, "active_workers") == 0)
    return controller


# --- outcomes


async def test_what_is_done_is_not_looked_at_again() -> None:
    script = Script(Done())
    controller = Controller(new_name(), script)
    async with running(controller):
        controller.queue.add(KEY)
        await soon(lambda: results(controller) == {"success": 1})
        assert retries(controller) == 0
    assert [key for key, _ in script.calls] == [KEY]


@pytest.mark.parametrize("seconds", [0.05, -3])
async def test_requeue_after_waits_for_so_many_seconds(seconds: float) -> None:
    script = Script(RequeueAfter(seconds), Done())
    controller = await run_script(script, 2)
    (_, first), (_, second) = script.calls
    assert second - first >= seconds
    assert results(controller) == {"requeue_after": 1, "success": 1}


@pytest.mark.parametrize(("priority", "expected"), [(None, REMOVAL), (RESYNC, RESYNC)])
async def test_requeue_after_keeps_the_priority_or_sets_it(priority: Priority | None, expected: Priority) -> None:
    priorities = []

    async def look() -> Result:
        priorities.append(controller.queue.priority(KEY))
        return Done()

    controller = Controller(new_name(), Script(RequeueAfter(0.01, priority), look))
    async with running(controller):
        controller.queue.add(KEY, REMOVAL)
        await soon(lambda: priorities == [expected])


async def test_requeue_runs_again_with_back_off() -> None:
    script = Script(Requeue(), Requeue(), Requeue(), Done())
    controller = await run_script(script, 4)
    times = [at for _, at in script.calls]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert [gap >= 0.005 * 2**n for n, gap in enumerate(gaps)] == [True] * 3
    assert results(controller) == {"requeue": 3, "success": 1}


ERRORS = (REFUSED, Unreachable("no answer"), ReconcileError("not yet"), ConnectionResetError("reset"), TimeoutError())
CRASHES = (KeyError("spec"), asyncio.CancelledError())


@pytest.mark.parametrize("error", [*ERRORS, *CRASHES], ids=lambda error: type(error).__name__)
async def test_an_error_is_counted_and_tried_again(error: BaseException) -> None:
    controller = await run_script(Script(error, Done()), 2)
    assert results(controller) == {"error": 1, "success": 1}
    assert counted(controller, "reconcile_errors_total") == 1
    assert counted(controller, "reconcile_panics_total") == (error in CRASHES)
    assert counted(controller, "terminal_reconcile_errors_total") == 0


async def test_a_repeated_error_is_counted_and_tried_again_and_not_logged(logs: LogCapture) -> None:
    controller = await run_script(Script(RepeatedError("still away"), Done()), 2)
    assert results(controller) == {"error": 1, "success": 1}
    assert "Reconciler error" not in [each["event"] for each in logs.entries]


async def test_a_terminal_error_is_counted_and_not_tried_again() -> None:
    script = Script(TerminalError("the manifest is no object"))
    controller = Controller(new_name(), script)
    async with running(controller):
        controller.queue.add(KEY)
        await soon(lambda: bool(script.calls) and counted(controller, "active_workers") == 0)
        assert retries(controller) == 0
    assert results(controller) == {"error": 1}
    assert counted(controller, "reconcile_errors_total") == 1
    assert counted(controller, "terminal_reconcile_errors_total") == 1


def refused(error_type: type[ApiError]) -> ApiError:
    return error_type(409, message="it may not be modified")


def said_again(cause: Exception, error_type: type[ReconcileError] = ReconcileError) -> ReconcileError:
    error = error_type(f"failed to add finalizer: {cause}")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (refused(Conflict), True),
        (said_again(refused(Conflict)), True),
        (ExceptionGroup("two", [refused(Conflict), said_again(ExceptionGroup("one", [refused(Conflict)]))]), True),
        (ExceptionGroup("two", [refused(Conflict), ReconcileError("x")]), False),
        (refused(AlreadyExists), False),
        (said_again(refused(Conflict), TerminalError), False),
        (said_again(refused(Forbidden)), False),
    ],
)
def test_a_conflict_is_one_in_whatever_words(error: Exception, expected: bool) -> None:
    assert failure_of(error).is_conflict is expected


async def test_a_conflict_is_no_error_and_is_tried_again(logs: LogCapture) -> None:
    controller = await run_script(Script(refused(Conflict), Done()), 2)
    assert results(controller) == {"requeue": 1, "success": 1}
    assert counted(controller, "reconcile_errors_total") == 0
    assert [entry["event"] for entry in logs.entries if entry["log_level"] == "error"] == []


def logged_error(logs: LogCapture) -> Any:
    (entry,) = [entry for entry in logs.entries if entry["event"] == "Reconciler error"]
    return entry


async def test_a_crash_is_logged_with_its_place(logs: LogCapture) -> None:
    await run_script(Script(KeyError("spec"), Done()), 2)
    entry = logged_error(logs)
    assert entry["error"] == "panic: KeyError: 'spec' [recovered]"
    assert isinstance(entry["exc_info"], KeyError)


async def test_a_reconciliation_that_takes_too_long_is_cancelled_and_tried_again(logs: LogCapture) -> None:
    controller = await run_script(Script(lambda: asyncio.sleep(60, Done()), Done()), 2, time_limit=0.01)
    assert results(controller) == {"error": 1, "success": 1}
    assert counted(controller, "reconcile_timeouts_total") == 1
    assert logged_error(logs)["error"] == "the reconciliation exceeded its time limit of 10ms"


async def test_a_reconciliation_that_answers_nonsense_does_not_end_the_worker(logs: LogCapture) -> None:
    script = Script(lambda: asyncio.sleep(0, cast("Result", "fine")))
    await run_script(script, 2)
    assert len(script.calls) == 2
    assert [entry["log_level"] for entry in logs.entries if "result" in entry["event"]] == ["error"]


async def test_success_ends_the_back_off() -> None:
    controller = await run_script(Script(REFUSED, REFUSED, Done()), 3)
    assert not controller.queue._failures


@pytest.mark.parametrize(
    ("error", "text", "sort"),
    [
        (REFUSED, "it may not be modified", ""),
        (TerminalError("never"), "never", "terminal"),
        (ValueError("bug"), "panic: ValueError: bug [recovered]", "panic"),
        (TimeoutError(), "TimeoutError", ""),
        (ExceptionGroup("both", [REFUSED, Unreachable("gone")]), "it may not be modified; gone", ""),
        (ExceptionGroup("one may pass", [REFUSED, TerminalError("never")]), "it may not be modified; never", ""),
        (ExceptionGroup("all", [TerminalError("never"), TerminalError("no")]), "never; no", "terminal"),
        (
            ExceptionGroup("outer", [REFUSED, ExceptionGroup("inner", [ValueError("bug")])]),
            "panic: ValueError: bug [recovered]",
            "panic",
        ),
    ],
)
def test_errors_and_groups_of_them_are_classified(error: Exception, text: str, sort: str) -> None:
    failure = failure_of(error)
    assert failure.text == text
    assert (failure.is_terminal, failure.is_panic) == (sort == "terminal", sort == "panic")


# --- workers


async def test_no_more_keys_are_worked_on_at_once_than_allowed() -> None:
    active: set[Key] = set()
    most = 0

    async def reconcile(key: Key) -> Result:
        nonlocal most
        active.add(key)
        most = max(most, len(active))
        await asyncio.sleep(0.001)
        active.remove(key)
        return Done()

    controller = Controller(new_name(), reconcile, concurrency=3)
    async with running(controller):
        for number in range(12):
            controller.queue.add(Key("", str(number)))
        await soon(lambda: results(controller) == {"success": 12})
    assert most == 3


async def test_stopping_cancels_what_runs_and_takes_nothing_more() -> None:
    started = asyncio.Event()
    unwound: list[Key] = []

    async def reconcile(key: Key) -> Result:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            unwound.append(key)
        return Done()

    controller = Controller(new_name(), reconcile)
    async with running(controller):
        controller.queue.add(KEY)
        controller.queue.add(Key("default", "next"))
        await started.wait()
    assert unwound == [KEY]
    assert results(controller) == {}
    assert counted(controller, "active_workers") == 0


async def test_stopping_does_not_wait_forever_for_a_reconciliation_that_does_not_stop(logs: LogCapture) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> Result:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return Done()

    controller = Controller(new_name(), reconcile, stop_within=0.01)
    async with asyncio.timeout(60), running(controller):
        controller.queue.add(KEY)
        await started.wait()
    release.set()
    await soon(lambda: counted(controller, "active_workers") == 0)
    assert [entry["count"] for entry in logs.entries if "did not stop" in entry["event"]] == [1]


async def test_a_queue_that_is_shut_down_ends_the_controller() -> None:
    controller = Controller(new_name(), Script())
    async with asyncio.timeout(60), running(controller) as task:
        controller.queue.shut_down()
        await task


# --- metrics and logs


def test_all_series_of_a_controller_exist_from_the_start() -> None:
    controller = Controller(new_name(), Script(), concurrency=7)
    for result in RESULTS:
        assert counted(controller, "reconcile_total", result=result) == 0
    totals = [f"reconcile_{what}_total" for what in ("errors", "panics", "timeouts")]
    for name in (*totals, "terminal_reconcile_errors_total", "reconcile_time_seconds_count", "active_workers"):
        assert counted(controller, name) == 0
    assert counted(controller, "max_concurrent_reconciles") == 7


async def test_reconciliations_are_timed() -> None:
    controller = await run_script(Script(REFUSED, Done()), 2)
    assert counted(controller, "reconcile_time_seconds_count") == 2


async def test_all_that_is_logged_in_a_reconciliation_reports_what_it_is_about(logs: LogCapture) -> None:
    async def speak() -> Result:
        structlog.get_logger().info("hello")
        raise REFUSED

    controller = Controller(new_name(), Script(speak), kind=SECRETS)
    async with running(controller):
        controller.queue.add(KEY)
        await soon(lambda: results(controller) == {"error": 1, "success": 1})
    hello, failed = (entry for entry in logs.entries if entry["event"] in {"hello", "Reconciler error"})
    about = {
        "controller": controller.name,
        "controllerGroup": "",
        "controllerKind": "Secret",
        "Secret": {"namespace": "default", "name": "thing"},
        "namespace": "default",
        "name": "thing",
    }
    assert about.items() <= hello.items()
    assert about.items() <= failed.items()
    assert failed["error"] == "it may not be modified"
    assert "exc_info" not in failed
    assert str(uuid.UUID(hello["reconcileID"])) == failed["reconcileID"]


async def test_every_reconciliation_has_an_id_of_its_own(logs: LogCapture) -> None:
    await run_script(Script(REFUSED, REFUSED, Done()), 3)
    ids = [entry["reconcileID"] for entry in logs.entries if entry["event"] == "Reconciler error"]
    assert len(set(ids)) == 2


# --- regular looks that are needless


class Regular:
    """Is looked at regularly; counts how often, and how often that turned out to be needless."""

    def __init__(self) -> None:
        self.inputs = Inputs()
        self.looks = self.needless = 0

    async def __call__(self, key: Key) -> Result:
        self.inputs.begin(key)
        self.looks += 1
        return RequeueAfter(0.01, RESYNC, partial(self._is_needless, key))

    def _is_needless(self, key: Key) -> bool:
        unchanged = self.inputs.are_unchanged(key)
        self.needless += unchanged
        return unchanged

    async def rest(self) -> None:
        before = self.needless
        await soon(lambda: self.needless > before + 3)


async def test_a_regular_look_without_new_input_is_left_out_and_comes_again() -> None:
    regular = Regular()
    controller = Controller(new_name(), regular)
    async with running(controller):
        controller.queue.add(KEY)
        await regular.rest()
        assert (regular.looks, results(controller)) == (1, {"requeue_after": 1})
        regular.inputs.changed(KEY)
        await soon(lambda: regular.looks == 2)
        await regular.rest()
        regular.inputs.all_changed()
        await soon(lambda: regular.looks == 3)
        await regular.rest()
        assert regular.looks == 3


async def test_a_change_is_looked_at_even_if_the_regular_look_would_be_needless() -> None:
    regular = Regular()
    controller = Controller(new_name(), regular)
    async with running(controller):
        controller.queue.add(KEY)
        await regular.rest()
        controller.queue.add(KEY)
        await soon(lambda: regular.looks == 2)


async def test_input_that_changes_while_the_regular_look_waits_makes_it_take_place() -> None:
    """The change itself is not queued any more then."""
    regular, busy, let_go = Regular(), Key("default", "busy"), asyncio.Event()

    async def reconcile(key: Key) -> Result:
        if key != busy:
            return await regular(key)
        await let_go.wait()
        return Done()

    controller = Controller(new_name(), reconcile)
    async with running(controller):
        controller.queue.add(KEY)
        await soon(lambda: regular.looks == 1)
        controller.queue.add(busy)
        await soon(lambda: len(controller.queue) == 1)
        regular.inputs.changed(KEY)
        controller.queue.add_after(KEY, 60.0)
        let_go.set()
        await soon(lambda: regular.looks == 2)


async def test_input_that_changes_during_a_look_makes_for_another_one() -> None:
    inputs, looks = Inputs(), []

    async def reconcile(key: Key) -> Result:
        inputs.begin(key)
        looks.append(key)
        if len(looks) == 1:
            inputs.changed(key)
        return RequeueAfter(0.01, RESYNC, partial(inputs.are_unchanged, key))

    controller = Controller(new_name(), reconcile)
    async with running(controller):
        controller.queue.add(KEY)
        await soon(lambda: len(looks) == 2)


async def test_whether_a_look_is_needless_may_fail(logs: LogCapture) -> None:
    def fails() -> bool:
        raise RuntimeError("unexpected")

    script = Script(RequeueAfter(0.01, RESYNC, fails))
    await run_script(script, 2)
    assert [entry["log_level"] for entry in logs.entries if entry["event"].startswith("Cannot check whether")] == [
        "error"
    ]


async def test_thousands_of_keys_that_cost_little_leave_others_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kube.runtime.yielding._LONG_SECONDS", -1.0)
    turns: list[int] = []
    others = 0

    async def reconcile(_: Key) -> Result:
        turns.append(others)
        return Done()

    controller = Controller(new_name(), reconcile)
    for number in range(100):
        controller.queue.add(Key("default", f"k{number}"))
    async with running(controller):
        while len(turns) < 100:
            others += 1
            await asyncio.sleep(0)
    assert len(set(turns)) == 100
