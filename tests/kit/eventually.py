"""Waiting for what becomes so: the one place in which tests poll.

    pod = eventually(lambda: find(cluster, "pod"), "the Pod to come")
    await soon(lambda: queue.is_empty, "the queue to be empty")

Both return what `found` returns as soon as that is true. An AssertionError that `found` raises means not yet, and is
shown if time runs out, so `found` may as well assert what is to become so and return True. Limits are generous: they
distinguish a failure on a busy machine from one that will never end, and cost nothing where all is well.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Seconds."""


def eventually(
    found: Callable[[], T | None],
    what: str = "the condition",
    *,
    seconds: float = PATIENCE,
    state: Callable[[], object] = str,
    passing: tuple[type[Exception], ...] = (),
) -> T:
    """Args:
    state: what else is shown if time runs out.
    passing: errors of `found` that mean not yet.
    """
    wait = _Wait(what, seconds=seconds, state=state)
    while True:
        try:
            if result := found():
                return result
            problem: Exception | None = None
        except Exception as error:
            if not isinstance(error, (AssertionError, *passing)):
                raise
            problem = error
        time.sleep(wait.interval(problem))


async def soon(
    found: Callable[[], Any],
    what: str = "the condition",
    *,
    seconds: float = PATIENCE,
    state: Callable[[], object] = str,
    passing: tuple[type[Exception], ...] = (),
) -> Any:
    """The same on an event loop; `found` may be a coroutine function."""
    wait = _Wait(what, seconds=seconds, state=state)
    while True:
        try:
            result = found()
            if isinstance(result, Awaitable):
                result = await result
            if result:
                return result
            problem: Exception | None = None
        except Exception as error:
            if not isinstance(error, (AssertionError, *passing)):
                raise
            problem = error
        await asyncio.sleep(wait.interval(problem))


async def no_problem(problem: Callable[[], Awaitable[str]], *, seconds: float = PATIENCE) -> None:
    """Waits until there is none: `problem` reports in words what is not yet as it should be."""

    async def is_fine() -> bool:
        text = await problem()
        assert not text, text
        return True

    await soon(is_fine, "no problem", seconds=seconds)


class _Wait:
    def __init__(self, what: str, *, seconds: float, state: Callable[[], object]) -> None:
        self._what = what
        self._seconds = seconds
        self._state = state
        self._began = time.monotonic()

    def interval(self, problem: Exception | None) -> float:
        """Until the next look, mostly a call to an API server: short at first, longer for what takes longer."""
        passed = time.monotonic() - self._began
        if passed > self._seconds:
            shown = [text for text in (str(problem or ""), str(self._state())) if text]
            raise AssertionError(
                f"waited {self._seconds:.0f} s in vain for {self._what}: {'; '.join(shown)}"
            ) from problem
        return min(0.5, max(0.01, passed / 4))
