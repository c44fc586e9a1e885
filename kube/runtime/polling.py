"""Waiting for a state that no watch reports."""

import asyncio
from collections.abc import Awaitable, Callable


def _silent(_: str) -> None:
    pass


async def wait_while(
    problem: Callable[[], Awaitable[str]], *, seconds: float, every: float, report: Callable[[str], None] = _silent
) -> str:
    """Wait while there is a problem; return the one that is left at the end of the time, or an empty text.

    Args:
        problem: returns the present one; empty if there is none. It is called at least once.
        seconds: maximum time of waiting.
        every: seconds between two calls.
        report: called with the problem, each time that it changes.
    """
    loop, last = asyncio.get_running_loop(), ""
    until = loop.time() + seconds
    while found := await problem():
        if (left := until - loop.time()) <= 0:
            return found
        if found != last:
            last = found
            report(found)
        await asyncio.sleep(min(every, left))
    return ""
