"""The order of start and stop, what ends the process, and with which exit code and text."""

import asyncio
from dataclasses import KW_ONLY, dataclass, field

import pytest
import structlog

from kit.clock import settle
from kube.runtime.kubeconfig import ConfigurationError
from process.runner import Groups, Outcome, Runner

LATE = "failed waiting for all runnables to end within grace period of 5s: context deadline exceeded"


class LeadershipLost(Exception):
    pass


class Journal(list[str]):
    """What happened so far, and a way to wait for what is still to happen."""

    def __init__(self) -> None:
        super().__init__()
        self._written = asyncio.Event()

    def append(self, entry: str) -> None:
        super().append(entry)
        self._written.set()

    async def until(self, entry: str) -> None:
        async with asyncio.timeout(60):
            while entry not in self:
                self._written.clear()
                await self._written.wait()


@dataclass(eq=False)
class Part:
    """A component whose every step the test controls."""

    name: str
    journal: Journal
    _: KW_ONLY
    hold_start: bool = False
    hold_stop: bool = False
    start_error: Exception | None = None
    stop_error: Exception | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    may_stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.run: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not self.hold_start:
            self.ready.set()
        if not self.hold_stop:
            self.may_stop.set()

    async def start(self) -> None:
        self.journal.append(f"start {self.name}")
        await self.ready.wait()
        if self.start_error:
            raise self.start_error
        self.journal.append(f"ready {self.name}")

    async def wait(self) -> None:
        await self.run

    async def stop(self) -> None:
        self.journal.append(f"stop {self.name}")
        await self.may_stop.wait()
        self.journal.append(f"stopped {self.name}")
        if self.stop_error:
            raise self.stop_error


class Timer:
    """Stands in for sleeping: periods end when the test states so."""

    def __init__(self) -> None:
        self.periods: list[float] = []
        self.over = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.periods.append(seconds)
        await self.over.wait()


class Process:
    def __init__(self, *groups: list[Part], compose_error: Exception | None = None) -> None:
        self.timer = Timer()
        self._groups = groups
        self._compose_error = compose_error
        self.runner = Runner(self._compose, abort_on=(LeadershipLost,), sleep=self.timer)
        self.task = asyncio.create_task(self.runner.run())

    async def _compose(self) -> Groups:
        if self._compose_error:
            raise self._compose_error
        return self._groups

    async def stopped(self) -> Outcome:
        self.runner.request_stop()
        return await self.outcome()

    async def outcome(self) -> Outcome:
        async with asyncio.timeout(60):
            return await self.task


async def begun(journal: Journal, entry: str, *groups: list[Part]) -> Process:
    """Returns when the journal has this entry."""
    process = Process(*groups)
    await journal.until(entry)
    return process


@pytest.fixture
async def journal() -> Journal:
    return Journal()


async def test_groups_start_in_order_and_stop_in_reverse(journal: Journal) -> None:
    process = await begun(
        journal, "ready controllers", [Part("http", journal)], [Part("cache", journal)], [Part("controllers", journal)]
    )
    assert await process.stopped() == Outcome(0)
    assert journal == [
        *("start http", "ready http", "start cache", "ready cache", "start controllers", "ready controllers"),
        *("stop controllers", "stopped controllers", "stop cache", "stopped cache", "stop http", "stopped http"),
    ]


async def test_members_of_a_group_start_and_stop_together(journal: Journal) -> None:
    first, second = (Part(name, journal, hold_start=True, hold_stop=True) for name in ("first", "second"))
    process = await begun(journal, "start second", [first, second])
    first.ready.set()
    second.ready.set()
    await journal.until("ready second")
    process.runner.request_stop()
    await journal.until("stop second")
    assert "stopped first" not in journal
    first.may_stop.set()
    second.may_stop.set()
    assert await process.outcome() == Outcome(0)


async def test_a_group_waits_until_the_one_before_is_ready(journal: Journal) -> None:
    elector = Part("elector", journal, hold_start=True)
    process = await begun(journal, "start elector", [elector], [Part("controllers", journal)])
    await settle()
    assert journal == ["start elector"]
    elector.ready.set()
    await journal.until("ready controllers")
    assert await process.stopped() == Outcome(0)


async def test_a_stop_while_waiting_to_become_ready_stops_what_was_started_and_nothing_else(journal: Journal) -> None:
    elector = Part("elector", journal, hold_start=True)
    process = await begun(journal, "start elector", [Part("http", journal)], [elector], [Part("controllers", journal)])
    assert await process.stopped() == Outcome(0)
    assert journal[-4:] == ["stop elector", "stopped elector", "stop http", "stopped http"]
    assert "start controllers" not in journal


async def test_a_stop_may_be_requested_before_the_run_begins() -> None:
    assert await Process().stopped() == Outcome(0)


async def test_an_error_of_putting_things_together_ends_the_process_with_its_text() -> None:
    assert await Process(compose_error=ValueError("bad kubeconfig")).outcome() == Outcome(1, "bad kubeconfig")


async def test_an_error_of_a_start_ends_the_process_and_what_was_started_is_stopped(journal: Journal) -> None:
    broken = Part("broken", journal, start_error=OSError("address in use"))
    process = Process([Part("http", journal)], [broken], [Part("never", journal)])
    assert await process.outcome() == Outcome(1, "address in use")
    assert journal[-4:] == ["stop broken", "stopped broken", "stop http", "stopped http"]
    assert "start never" not in journal


async def test_errors_of_several_starts_are_all_reported(journal: Journal) -> None:
    parts = [Part(name, journal, start_error=OSError(name)) for name in ("one", "two", "one")]
    assert await Process(parts).outcome() == Outcome(1, "[one, two]")


async def test_a_component_that_fails_while_running_ends_the_process_gracefully_with_its_text(journal: Journal) -> None:
    cache = Part("cache", journal)
    process = await begun(journal, "ready controllers", [cache], [Part("controllers", journal)])
    cache.run.set_exception(RuntimeError("watch broke"))
    assert await process.outcome() == Outcome(1, "watch broke")
    assert journal[-4:] == ["stop controllers", "stopped controllers", "stop cache", "stopped cache"]


async def test_a_component_that_fails_while_others_still_start_ends_the_process(journal: Journal) -> None:
    cache = Part("cache", journal)
    process = await begun(journal, "start elector", [cache], [Part("elector", journal, hold_start=True)])
    cache.run.set_exception(RuntimeError("watch broke"))
    assert await process.outcome() == Outcome(1, "watch broke")


async def test_a_component_whose_work_is_cancelled_by_mistake_ends_the_process(journal: Journal) -> None:
    cache = Part("cache", journal)
    process = await begun(journal, "ready cache", [cache])
    cache.run.cancel()
    assert await process.outcome() == Outcome(1, "cache ended unexpectedly")


async def test_a_component_with_nothing_left_to_fail_keeps_its_place(journal: Journal) -> None:
    server, cache = Part("server", journal), Part("cache", journal)
    process = await begun(journal, "ready cache", [server, cache])
    server.run.set_result(None)
    await settle()
    assert not process.task.done()
    assert await process.stopped() == Outcome(0)
    assert "stopped server" in journal


async def test_errors_while_stopping_change_neither_order_nor_exit_code(journal: Journal) -> None:
    bad = Part("bad", journal, stop_error=OSError("would not close"))
    process = await begun(journal, "ready bad", [Part("http", journal)], [bad])
    assert await process.stopped() == Outcome(0)
    assert journal[-1] == "stopped http"


async def test_what_has_not_stopped_in_time_is_left_behind_and_the_rest_gets_a_last_chance(journal: Journal) -> None:
    stuck = Part("stuck", journal, hold_stop=True)
    process = await begun(journal, "ready stuck", [Part("elector", journal)], [stuck])
    process.runner.request_stop()
    await journal.until("stop stuck")
    assert process.timer.periods == [5.0]
    assert "stop elector" not in journal
    process.timer.over.set()
    assert await process.outcome() == Outcome(1, LATE)
    assert journal[-2:] == ["stop elector", "stopped elector"]
    assert "stopped stuck" not in journal


async def test_the_last_chance_is_bounded_too(journal: Journal) -> None:
    process = await begun(
        journal, "ready stuck", [Part("also stuck", journal, hold_stop=True)], [Part("stuck", journal, hold_stop=True)]
    )
    process.runner.request_stop()
    await journal.until("stop stuck")
    process.timer.over.set()
    assert await process.outcome() == Outcome(1, LATE)
    assert "stopped also stuck" not in journal
    assert process.timer.periods == [5.0, 1.0]


async def test_a_failure_followed_by_a_late_stop_reports_both(journal: Journal) -> None:
    stuck = Part("stuck", journal, hold_stop=True)
    process = await begun(journal, "ready stuck", [stuck])
    stuck.run.set_exception(RuntimeError("watch broke"))
    await journal.until("stop stuck")
    process.timer.over.set()
    assert await process.outcome() == Outcome(1, f"[watch broke, {LATE}]")


async def test_lost_leadership_ends_the_process_at_once_and_stops_nothing(journal: Journal) -> None:
    elector = Part("elector", journal)
    process = await begun(journal, "ready controllers", [elector], [Part("controllers", journal)])
    with structlog.testing.capture_logs() as logs:
        elector.run.set_exception(LeadershipLost("leader election lost"))
        assert await process.outcome() == Outcome(1, "leader election lost")
    assert "stop controllers" not in journal
    # That all else ends with it is no error.
    assert [entry["component"] for entry in logs] == ["elector"]


async def test_leadership_lost_while_stopping_ends_the_process_at_once(journal: Journal) -> None:
    elector = Part("elector", journal)
    process = await begun(journal, "ready controllers", [elector], [Part("controllers", journal, hold_stop=True)])
    process.runner.request_stop()
    await journal.until("stop controllers")
    elector.run.set_exception(LeadershipLost("leader election lost"))
    assert await process.outcome() == Outcome(1, "leader election lost")
    assert "stop elector" not in journal


async def test_a_kubeconfig_that_cannot_be_used_is_reported_in_one_line(journal: Journal) -> None:
    broken = Part("broken", journal)
    process = await begun(journal, "ready broken", [broken])
    with structlog.testing.capture_logs() as logs:
        broken.run.set_exception(ConfigurationError("cannot read the kubeconfig x"))
        assert await process.outcome() == Outcome(1, "cannot read the kubeconfig x")
    assert [entry["error"] for entry in logs if entry["log_level"] == "error"] == ["cannot read the kubeconfig x"]
