"""Writes the progress of a running flow to a status; nothing else writes the last operation meanwhile.

    async with Progress(write) as progress:
        await run(FLOW, operation, on_change=progress.report)

Only the newest snapshot is written, at most once per period, and only if it differs from the previous one. A flow that
finishes sooner writes none. When a task gets an error, or loses that of the previous run, it is written at once, since
others rely on it. A failed write is repeated with the next one, and is no failure of the flow.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Self

import structlog

from agent.gardenlet.flow.graph import Snapshot
from agent.gardenlet.flow.run import Sleep
from kube.errors import KubeError

_SHORTEST_PERIOD = 1.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Progress:
    """Writer of the progress.

    Args:
        period: minimum seconds between writes; the first one comes after one period.
    """

    def __init__(
        self,
        write: Callable[[Snapshot], Awaitable[None]],
        *,
        period: float = _SHORTEST_PERIOD,
        now: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._write = write
        self._period = max(period, _SHORTEST_PERIOD)
        self._now = now
        self._sleep = sleep
        self._latest: Snapshot | None = None
        self._written: Snapshot | None = None
        self._news, self._urgent = asyncio.Event(), asyncio.Event()

    def report(self, snapshot: Snapshot) -> None:
        before = self._latest
        self._latest = snapshot
        if before is not None and before.troubled != snapshot.troubled:
            self._urgent.set()
        self._news.set()

    async def __aenter__(self) -> Self:
        self._due = self._now() + self._period
        self._writing: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Stop writing; a write in progress is completed unless cancelled, later snapshots are dropped."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._writing is not None:
            if error is not None and issubclass(error, asyncio.CancelledError):
                self._writing.cancel()
            await asyncio.wait([self._writing])

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            await self._until_due()
            self._news.clear()
            self._urgent.clear()
            snapshot = self._latest
            if snapshot is None or (self._written is not None and _reported(snapshot) == _reported(self._written)):
                continue
            self._writing = asyncio.create_task(self._try(snapshot))
            await asyncio.shield(self._writing)
            self._due = self._now() + self._period

    async def _until_due(self) -> None:
        remaining = self._due - self._now()
        if remaining <= 0 or self._urgent.is_set():
            return
        waits = [asyncio.ensure_future(self._sleep(remaining)), asyncio.ensure_future(self._urgent.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _try(self, snapshot: Snapshot) -> None:
        try:
            await self._write(snapshot)
        except KubeError as error:
            log.info("Cannot write the progress", error=str(error))
            self._news.set()
        except Exception:
            log.exception("Cannot write the progress")
        else:
            self._written = snapshot


def _reported(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.progress, snapshot.description, snapshot.troubled
