"""Long computations off the event loop.

More threads for one purpose would be no faster, since only one can hold the lock of the interpreter; but the event loop
would have to wait for each of them, at every turn. Making keys is different: it releases the lock.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Thread:
    """Computes one thing after the other, or `at_once` at a time."""

    def __init__(self, name: str, *, at_once: int = 1) -> None:
        self._executor = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix=name)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args, **kwargs))


OBJECTS = Thread("objects")
"""Thread for computations on one large object."""
KEYS = Thread("keys", at_once=os.cpu_count() or 1)
"""Threads for making private keys, and for signing with them: at most one per core."""
