"""Yielding on the event loop: long computations let other tasks run in between."""

import asyncio
import time

_LONG_SECONDS = 0.005


class Yielding:
    """Yields during a series of short steps, by one task or several.

    It measures the time since the start of the loop's round in which the series continues: a series that waited for
    something has yielded already. Measuring CPU time instead, and yielding whenever other tasks had used it up, took
    4 % of the CPU of applying a thousand objects.
    """

    def __init__(self) -> None:
        self._is_counting = False
        self._until = 0.0
        self._turns = asyncio.Lock()
        """Admits only one of several tasks in each round of the loop; together they would block it."""

    async def after_long(self) -> None:
        if self._is_long():
            async with self._turns:
                if self._is_long():
                    await asyncio.sleep(0)
                    self._count()

    def _is_long(self) -> bool:
        if not self._is_counting:
            self._count()
        return time.perf_counter() >= self._until

    def _count(self) -> None:
        """Start to count, until the round ends."""
        self._until = time.perf_counter() + _LONG_SECONDS
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._round_ended)

    def _round_ended(self) -> None:
        self._is_counting = False
