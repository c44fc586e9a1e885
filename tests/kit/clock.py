"""Time that passes when the test states so.

clock = FakeClock()
queue = WorkQueue("test", now=clock, call_later=clock.call_later)
clock.advance(10)
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable


class Timer:
    """One call that is to come, as `asyncio.TimerHandle`."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeClock:
    """Seconds since an arbitrary moment; `now` may be set as well, which calls no one."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()

    def __call__(self) -> float:
        return self.now

    @property
    def pending(self) -> int:
        """How many calls are to come."""
        return sum(not timer.is_cancelled for _, _, timer in self._timers)

    @property
    def due(self) -> float:
        """When the next call is to come."""
        return min(due for due, _, timer in self._timers if not timer.is_cancelled)

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (self.now + delay, next(self._count), timer))
        return timer

    async def sleep(self, seconds: float) -> None:
        """Until the test has moved the clock so far."""
        awake = asyncio.Event()
        self.call_later(seconds, awake.set)
        await awake.wait()

    def advance(self, seconds: float) -> None:
        """Calls what is due on the way, in its order; follow it by `settle` for tasks to go on."""
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until + 1e-9:
            due, _, timer = heapq.heappop(self._timers)
            self.now = max(self.now, due)
            if not timer.is_cancelled:
                timer.callback()
        self.now = until


def skip(seconds: float) -> None:
    """Moves the clock of the running event loop (asyncio's own): its timers are due so much earlier."""
    loop = asyncio.get_running_loop()
    before = loop.time
    setattr(loop, "time", lambda: before() + seconds)  # noqa: B010 - a method, to mypy


async def settle() -> None:
    """Lets all tasks go on that wait for nothing."""
    for _ in range(10):
        await asyncio.sleep(0)
