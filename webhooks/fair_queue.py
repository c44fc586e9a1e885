"""Fair queue of large reviews: one is processed at a time, and the users who sent them take turns.

This bounds the memory that they hold, and a user who sends many of them delays only their own. After a review that took
long, all others get as much time. A review that waits for an answer of an API server does not block the next. The bytes
of waiting reviews are limited; a review that exceeds the limit is cancelled, and restarts later.
"""

import asyncio
import contextlib
import re
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

from kube.runtime.limiter import ByteBudget
from webhooks import offload
from webhooks.offload import Offload

T = TypeVar("T")

LARGE = 32 << 10
"""Size in bytes above which a body waits for its turn."""
MOST_OF_A_USER = 64
"""Large reviews of requests of one user that wait or are processed."""

WAITING_AT_ONCE = 1 << 20
_LONG_SECONDS = 0.02

_USERNAME = re.compile(rb'"username":"((?:[^"\\]|\\.){1,512})"')
_BEFORE_USERNAME = 8 << 10


class TooManyReviews(Exception):
    def __init__(self) -> None:
        super().__init__(f"too many large requests of one user at a time: limit is {MOST_OF_A_USER}")


def user_of(body: bytes) -> bytes:
    """User that sent the request in a body; API servers write it before the objects. Empty if it is missing."""
    found = _USERNAME.search(body, 0, _BEFORE_USERNAME)
    return found[1] if found else b""


class FairQueue:
    def __init__(self) -> None:
        self._round_robin = _RoundRobin()
        self._one_at_a_time = asyncio.Lock()
        self._free_at = 0.0
        self._waiting = ByteBudget(WAITING_AT_ONCE)
        self._of_user: Counter[bytes] = Counter()

    async def work(self, size: int, user: bytes, review: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a review, which may be called twice.

        Raises:
            TooManyReviews: too many reviews of the user are pending.
        """
        if self._of_user[user] >= MOST_OF_A_USER:
            raise TooManyReviews
        self._of_user[user] += 1
        try:
            return await self._work(size, user, review)
        finally:
            self._of_user[user] -= 1
            if not self._of_user[user]:
                del self._of_user[user]

    async def _work(self, size: int, user: bytes, review: Callable[[], Coroutine[Any, Any, T]]) -> T:
        begun = await self._begin(user, review)
        if begun.done():
            return begun.result()
        if self._waiting.has(size):
            async with self._waiting.hold(size):
                return await begun
        begun.cancel()
        await asyncio.wait({begun})
        async with self._waiting.hold(size):
            return await (await self._begin(user, review))

    async def _begin(self, user: bytes, review: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
        """Start a review, and run it as far as it gets without waiting for anything but its own steps."""
        now = asyncio.get_running_loop().time
        async with self._round_robin.of(user):
            if (pause := self._free_at - now()) > 0:
                await asyncio.sleep(pause)
            steps = Offload(self._one_at_a_time)
            context = copy_context()
            context.run(offload.current.set, steps)
            begun = asyncio.create_task(review(), context=context)
            try:
                await asyncio.sleep(0)
                while not steps.idle.is_set():
                    await steps.idle.wait()
            except asyncio.CancelledError:
                begun.cancel()
                raise
            if steps.spent > _LONG_SECONDS:
                self._free_at = now() + steps.spent
        return begun


class _RoundRobin:
    """Lock whose holders take turns by user; each user's requests keep their order."""

    def __init__(self) -> None:
        self._is_taken = False
        self._queues: OrderedDict[bytes, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def of(self, user: bytes) -> AsyncIterator[None]:
        if self._is_taken:
            may_come = asyncio.get_running_loop().create_future()
            self._queues.setdefault(user, deque()).append(may_come)
            try:
                await may_come
            except asyncio.CancelledError:
                if may_come.done() and not may_come.cancelled():
                    self._next()
                raise
        self._is_taken = True
        try:
            yield
        finally:
            self._next()

    def _next(self) -> None:
        while self._queues:
            user, queue = self._queues.popitem(last=False)
            may_come = queue.popleft()
            if queue:
                self._queues[user] = queue
            if not may_come.cancelled():
                may_come.set_result(None)
                return
        self._is_taken = False
