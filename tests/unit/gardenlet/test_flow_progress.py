"""Saying in a status how far a flow is: seldom, only what is new, and never in the way."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from agent.gardenlet.flow.graph import Snapshot
from agent.gardenlet.flow.progress import Progress
from gardener.operations import PROGRAM_ENDED
from kit.clock import FakeClock, settle
from kube.errors import KubeError


def _snapshot(
    *running: str,
    succeeded: int = 0,
    failed_before: frozenset[str] = frozenset(),
    steps: Mapping[str, str] | None = None,
) -> Snapshot:
    done = frozenset(f"done-{number}" for number in range(succeeded))
    return Snapshot(
        flow="Test",
        total=10,
        succeeded=done,
        running=frozenset(running),
        failures=(),
        failed_before=failed_before,
        steps=steps or {},
    )


@dataclass
class Status:
    clock: FakeClock = field(default_factory=lambda: FakeClock(0.0))
    written: list[tuple[float, str]] = field(default_factory=list)
    error: Exception | None = None
    free: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.free.set()

    async def write(self, snapshot: Snapshot) -> None:
        await self.free.wait()
        if self.error is not None:
            raise self.error
        self.written.append((self.clock(), f"{snapshot.progress} {snapshot.description}"))

    async def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds * 8)):
            self.clock.advance(0.125)
            await settle()


@asynccontextmanager
async def _reporting(status: Status, *, period: float = 1.0) -> AsyncIterator[Progress]:
    async with Progress(status.write, period=period, now=status.clock, sleep=status.clock.sleep) as progress:
        await settle()
        yield progress


async def test_the_newest_is_written_once_a_period() -> None:
    status = Status()
    async with _reporting(status, period=5.0) as progress:
        for number in range(11):
            progress.report(_snapshot("a", succeeded=number))
            await status.pass_time(1)
    assert status.written == [(5.0, "40 a"), (10.0, "90 a")]


async def test_a_flow_that_is_done_at_once_writes_nothing() -> None:
    status = Status()
    async with _reporting(status) as progress:
        progress.report(_snapshot("a"))
        progress.report(_snapshot(succeeded=10))
    assert status.written == []


async def test_no_period_is_shorter_than_a_second() -> None:
    status = Status()
    async with _reporting(status, period=0.0) as progress:
        for number in range(9):
            progress.report(_snapshot("a", succeeded=number))
            await status.pass_time(0.5)
    moments = [moment for moment, _ in status.written]
    assert len(moments) == 4
    assert all(later - sooner >= 1.0 for sooner, later in itertools.pairwise(moments))


async def test_what_reports_nothing_new_is_not_written() -> None:
    status = Status()
    async with _reporting(status) as progress:
        for _ in range(5):
            progress.report(_snapshot("a"))
            await status.pass_time(2)
    assert [text for _, text in status.written] == ["0 a"]


async def test_that_an_error_is_gone_is_written_at_once() -> None:
    status = Status()
    async with _reporting(status, period=60.0) as progress:
        progress.report(_snapshot("a", failed_before=frozenset({"a"})))
        await status.pass_time(0.25)
        assert status.written == []
        progress.report(_snapshot("b", succeeded=1))
        await settle()
        assert [text for _, text in status.written] == ["10 b"]


async def test_that_a_program_has_ended_is_written_at_once() -> None:
    status, step = Status(), f"{PROGRAM_ENDED}: unknown flag"
    async with _reporting(status, period=60.0) as progress:
        progress.report(_snapshot("a"))
        progress.report(_snapshot("a", steps={"a": step}))
        await settle()
        assert [text for _, text in status.written] == [f"0 a ({step})"]


@pytest.mark.parametrize("error", [KubeError("not now"), TypeError("a bug")])
async def test_a_write_that_fails_is_made_up_for(error: Exception) -> None:
    status = Status(error=error)
    async with _reporting(status) as progress:
        progress.report(_snapshot("a"))
        await status.pass_time(1.5)
        assert status.written == []
        status.error = None
        if isinstance(error, TypeError):
            progress.report(_snapshot("b"))
        await status.pass_time(1.5)
    assert len(status.written) == 1


async def test_a_write_under_way_ends_before_what_follows() -> None:
    status = Status()
    status.free.clear()

    async def flow() -> None:
        async with _reporting(status) as progress:
            progress.report(_snapshot("a"))
            await status.pass_time(1.5)

    task = asyncio.create_task(flow())
    for _ in range(50):
        await settle()
    assert not task.done()
    status.free.set()
    await task
    assert len(status.written) == 1


async def test_a_write_that_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    status = Status()
    status.free.clear()

    async def flow() -> None:
        async with _reporting(status) as progress:
            progress.report(_snapshot("a"))
            await status.pass_time(1.5)
            await asyncio.Event().wait()

    task = asyncio.create_task(flow())
    for _ in range(50):
        await settle()
    task.cancel()
    await settle()
    assert task.cancelled()
    assert status.written == []
