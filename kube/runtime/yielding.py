"""Yielding on the event loop: what computes for long lets others have their turns in between."""

import asyncio
import time

_LONG_SECONDS = 0.005


class Yielding:
    """For a row of things to do, each of which takes little, by one task or several.

    CPU time counts, not time. Asking for it is a system call, so it is not asked before as much time has passed as is
    left: no thread takes more CPU time than that.
    """

    def __init__(self) -> None:
        self._began = time.thread_time()
        self._not_before = time.perf_counter() + _LONG_SECONDS
        self._turns = asyncio.Lock()
        """Of several tasks only one goes on in each round of the loop; together they would hold it."""

    async def after_long(self) -> None:
        if self._is_long():
            async with self._turns:
                if self._is_long():
                    await asyncio.sleep(0)
                    self._began = time.thread_time()

    def _is_long(self) -> bool:
        now = time.perf_counter()
        if now < self._not_before:
            return False
        left = _LONG_SECONDS - (time.thread_time() - self._began)
        self._not_before = now + max(left, 0.0)
        return left < 0
