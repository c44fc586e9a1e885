"""Return of free memory to the system, and the memory limit.

The C library keeps freed memory as long as something above it is in use. After hundreds of simultaneous connections,
each with its buffers for TLS, that can be twice the memory of the whole process, and looks like a leak.

A buffer for TLS is 256 kB, mostly untouched. After the first one is freed, the C library regards such sizes as usual
and puts further ones among small objects. Small objects then settle in their place, and pages are hardly ever free
again.
"""

import asyncio
import ctypes
from collections.abc import Callable
from pathlib import Path

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""A container's own limit: of the second version of control groups, and of the first."""

_NO_LIMIT = 1 << 60
"""The first version has no value for unlimited, only a number of about this size."""


_MMAP_THRESHOLD = -3
"""Name of the setting in malloc.h."""
_LARGE = 128 << 10


def keep_large_apart() -> None:
    """Map blocks larger than 128 kB separately, and unmap them when they are freed.

    For programs with many connections and few requests: reading a response takes some microseconds longer.
    """
    if (mallopt := _of_the_c_library("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)


class MemoryReturn:
    """Returns free memory periodically; a component in the sense of `process.runner`.

    Args: every: seconds; searching the memory takes about a millisecond.
    """

    name = "memory return"

    def __init__(self, *, every: float = 30.0) -> None:
        self._every = every
        self._trim = _of_the_c_library("malloc_trim")

    async def start(self) -> None:
        pass

    async def wait(self) -> None:
        while self._trim is not None:
            await asyncio.sleep(self._every)
            self._trim(0)

    async def stop(self) -> None:
        pass


def memory_limit(files: tuple[Path, ...] = _LIMITS) -> float:
    """Return the bytes that the container may use; infinite without a limit, or if it is unknown."""
    for file in files:
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
        if limit < _NO_LIMIT:
            return limit
    return float("inf")


def _of_the_c_library(name: str) -> Callable[..., int] | None:
    """Return a function of the GNU C library; None in others, which do not need it."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return function
