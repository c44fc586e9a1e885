"""Shared, limited resources: requests to an API server, and memory. Waiters are served in order.

The token bucket of a connection: at most `burst` requests at once, `qps` a second over time. All clients of a
connection share one bucket, so that the configured figure is a real bound.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable


class Allowance:
    """Permissions without waiting: a request without permission is dropped."""

    def __init__(self, *, burst: int, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._left = float(burst)
        self._updated = clock()

    def take(self) -> bool:
        now = self._clock()
        self._left, self._updated = self._left_at(now), now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    @property
    def is_whole(self) -> bool:
        """Whether it is as good as a new one."""
        return self._left_at(self._clock()) >= self._burst

    def _left_at(self, now: float) -> float:
        return min(self._burst, self._left + (now - self._updated) * self._per_second)


class TokenBucket:
    """Args: qps: requests a second, negative for no limit; burst: maximum at once; observe: called with each wait."""

    def __init__(
        self,
        *,
        qps: float,
        burst: int,
        observe: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._observe = observe
        self._clock = clock
        self._sleep = sleep
        self._tokens = float(self._burst)
        self._updated = clock()

    async def acquire(self) -> float:
        """Take a token, waiting for it if need be. Return the seconds waited."""
        waited = await self._wait()
        if self._observe is not None:
            self._observe(waited)
        return waited

    async def _wait(self) -> float:
        if self._qps < 0:
            return 0.0
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._qps)
        self._updated = now
        # A negative balance is a reservation: it makes the next in line wait longer.
        self._tokens -= 1
        if self._tokens >= 0:
            return 0.0
        delay = -self._tokens / self._qps
        try:
            await self._sleep(delay)
        except asyncio.CancelledError:
            self._tokens += 1
            raise
        return delay


class ByteBudget:
    """Shared memory: a request for more than is left waits until others are done.

    First come, first served, so that many small requests don't keep a large one waiting.

    Args: total: bytes.
    """

    def __init__(self, total: int) -> None:
        self._total = self._left = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def has(self, need: int) -> bool:
        """Whether `hold` would not wait."""
        return not self._waiting and min(need, self._total) <= self._left

    @contextlib.asynccontextmanager
    async def hold(self, need: int) -> AsyncIterator[None]:
        """Reserve `need` bytes within the context. A request for more than the total gets all of it, alone."""
        need = min(need, self._total)
        granted = asyncio.get_running_loop().create_future()
        self._waiting.append((need, granted))
        self._serve()
        try:
            await granted
            yield
        finally:
            if granted.done() and not granted.cancelled():
                self._left += need
            self._serve()

    def _serve(self) -> None:
        while self._waiting:
            need, granted = self._waiting[0]
            if not granted.cancelled():
                if need > self._left:
                    return
                self._left -= need
                granted.set_result(None)
            self._waiting.popleft()
