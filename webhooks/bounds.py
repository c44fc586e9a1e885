"""What a review may cost, from any client: how many values its JSON has, and when the large ones are worked on.

A value takes much more memory than its text, and time in every step: a body of seven megabytes may have millions.
Counting is for bodies that are long enough to have too many. All others cost a look at their length.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kube.limiter import ByteBudget

T = TypeVar("T")

MAX_VALUES = 250_000
"""Of a body. The largest objects, CloudProfiles of a megabyte, have some fifty thousand; an update has two of them."""

LARGE = 16 << 10
"""Bytes of a body that waits for its turn."""

_WAITING_AT_ONCE = 1 << 20
_LONG_SECONDS = 0.02

_SEPARATORS = b",[{"


class TooManyValues(ValueError):
    def __init__(self) -> None:
        super().__init__(f"too many values: limit is {MAX_VALUES}")


def demand_few_values(body: bytes) -> None:
    """Raises: TooManyValues."""
    # A value takes two bytes at least, and each but the first follows a comma or is the first of a list or an object.
    if len(body) > 2 * MAX_VALUES and _separators(body) >= MAX_VALUES and _has_too_many(body):
        raise TooManyValues


def _separators(text: bytes) -> int:
    return len(text) - len(text.translate(None, _SEPARATORS))


def _has_too_many(body: bytes) -> bool:
    """Without what is in strings. What follows a mistake does not matter, since there the parser stops."""
    body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # With the names of fields there are at most two strings for a value.
    if body.count(b'"') > 4 * MAX_VALUES:
        return True
    return _separators(b"".join(body.split(b'"')[::2])) >= MAX_VALUES


class Turns:
    """Large reviews are worked on one after another, and one that took long leaves as much time to all others.

    Some wait for an answer of an API server. They keep nobody else waiting, and only so many bytes of them wait at a
    time: one that finds no room is given up, and begins again when there is some.
    """

    def __init__(self) -> None:
        self._door = asyncio.Lock()
        self._free_at = 0.0
        self._waiting = ByteBudget(_WAITING_AT_ONCE)

    async def work(self, size: int, review: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a review; called twice if need be."""
        begun = await self._begin(review)
        if begun.done():
            return begun.result()
        if self._waiting.has(size):
            async with self._waiting.hold(size):
                return await begun
        begun.cancel()
        await asyncio.wait({begun})
        async with self._waiting.hold(size):
            return await (await self._begin(review))

    async def _begin(self, review: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
        """A review, as far as it gets without waiting."""
        now = asyncio.get_running_loop().time
        async with self._door:
            if (pause := self._free_at - now()) > 0:
                await asyncio.sleep(pause)
            before = time.thread_time()
            begun = asyncio.create_task(review())
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                begun.cancel()
                raise
            spent = time.thread_time() - before
            if spent > _LONG_SECONDS:
                self._free_at = now() + spent
        return begun
