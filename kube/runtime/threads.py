"""What takes long to compute, off the event loop.

More threads for one purpose would be no faster, since only one can hold the lock of the interpreter; but the event loop
would have to wait for each of them, at every turn.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Thread:
    """Computes one thing after the other."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def compute(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args, **kwargs))


OBJECTS = Thread("objects")
"""For what is computed from one large object."""
