"""Yielding on the event loop: what computes for long lets others have their turns in between."""

import asyncio
import time

_LONG_SECONDS = 0.005


class Yielding:
    """For a row of things to do, each of which takes little, by one task or several.

    Counted is the time since the round of the loop in which the row goes on: a row that waited for something has
    yielded already. To ask for CPU time instead, and to yield whenever other tasks had used it up, took 4 % of the CPU
    of applying a thousand objects.
    """

    def __init__(self) -> None:
        self._is_counting = False
        self._until = 0.0
        self._turns = asyncio.Lock()
        """Of several tasks only one goes on in each round of the loop; together they would hold it."""

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
        """Begin to count, until the round ends."""
        self._until = time.perf_counter() + _LONG_SECONDS
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._round_ended)

    def _round_ended(self) -> None:
        self._is_counting = False
