"""Time for what waits at the start, and patience with an API server that does not answer.

A cluster that is away is no reason to end: what is asked of it is asked again, until it is back. What it refuses is an
answer.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from kube.errors import KubeError, NotReady, ServerFailure, TooManyRequests, Unauthorized, Unreachable

T = TypeVar("T")

_PASSING = (Unreachable, TooManyRequests, ServerFailure, NotReady)
AGAIN_SECONDS = 2.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The time that passes here; tests pass their own."""

    now: Callable[[], float] = time.monotonic
    """Seconds."""
    sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep

    async def patiently(self, what: str, ask: Callable[[], Awaitable[T]], *, until: float = float("inf")) -> T:
        """The answer, as soon as there is one.

        Args:
            what: is tried, for the log.
            ask: tries it.
            until: when the last failure is raised instead.

        Raises: KubeError: a refusal.
        """
        reported = ""
        while True:
            try:
                return await ask()
            except KubeError as error:
                if not is_passing(error) or self.now() + AGAIN_SECONDS > until:
                    raise
                reported = _report(what, error, reported)
            await self.sleep(AGAIN_SECONDS)


def is_passing(error: KubeError) -> bool:
    """Whether it is no answer, or one that says nothing about what was asked, as those of proxies."""
    is_of_stranger = isinstance(error, Unauthorized) and not error.reason
    return isinstance(error, _PASSING) or is_of_stranger


def _report(what: str, error: KubeError, reported: str) -> str:
    """Once for each text: it may go on for hours."""
    if str(error) != reported:
        log.warning(f"Cannot {what}; trying again", error=str(error))
    return str(error)
