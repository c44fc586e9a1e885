"""Waiting times at the start, and patience with an API server that does not respond.

Requests to an unavailable cluster are repeated until it is back. A refusal is a response.
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
    """Clock and sleep; tests pass their own."""

    now: Callable[[], float] = time.monotonic
    """Seconds."""
    sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep

    async def patiently(self, what: str, ask: Callable[[], Awaitable[T]], *, until: float = float("inf")) -> T:
        """Repeat a request until there is a response, and return it.

        `what` completes the log message "Cannot ...". After `until`, the last failure is raised.

        Raises:
            KubeError: the request was refused, or failed until then.
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
    """Whether the error is no response, or one unrelated to the request, like that of a proxy."""
    is_of_stranger = isinstance(error, Unauthorized) and not error.reason
    return isinstance(error, _PASSING) or is_of_stranger


def _report(what: str, error: KubeError, reported: str) -> str:
    """Log each distinct error once: the wait may last for hours. Return the logged text."""
    if str(error) != reported:
        log.warning(f"Cannot {what}; trying again", error=str(error))
    return str(error)
