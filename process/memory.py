"""Memory that is free goes back to the system; and how much there may be.

The C library keeps what was freed as long as something above it is in use. After hundreds of connections at once, each
with its buffers for TLS, that can be twice the memory of the whole process, and looks like a leak.

A buffer for TLS is 256 kB, mostly untouched. Once the first was freed, the C library takes such sizes for usual and
puts further ones among all that is small. Where one was, small things settle, and pages are hardly ever free again.
"""

import asyncio
import ctypes
from collections.abc import Callable
from pathlib import Path

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""As a container sees its own: of the second version of control groups, and of the first."""

_NO_LIMIT = 1 << 60
"""The first version has no word for it, but a number that is about so large."""


_MMAP_THRESHOLD = -3
"""The name of the setting in malloc.h."""
_LARGE = 128 << 10


def keep_large_apart() -> None:
    """Whatever is larger than 128 kB is mapped by itself, and unmapped when it is freed.

    For programs with many connections and few requests: it makes the reading of an answer some microseconds longer.
    """
    if (mallopt := _of_the_c_library("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)


class MemoryReturn:
    """Gives back what is free, now and then; a component in the sense of `process.runner`.

    Args: every: seconds; to look through the memory takes about a millisecond.
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
    """Bytes that the container may use; infinite without a limit, or where none can be found out."""
    for file in files:
        try:
            limit = int(file.read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue
        if limit < _NO_LIMIT:
            return limit
    return float("inf")


def _of_the_c_library(name: str) -> Callable[..., int] | None:
    """Other C libraries than that of GNU have no such functions, and need none."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return function
