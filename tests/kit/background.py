"""Work that goes on beside a test, until its block ends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Self


@contextlib.asynccontextmanager
async def beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Cancelled at the end of the block; how it ended before does not count."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Clients(contextlib.AsyncExitStack):
    """So many clients that work, each on its own, as long as the block lasts."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    async def work(self) -> None:
        """What one of them does."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.enter_async_context(beside(*(self.work() for _ in range(self._count))))
        return self
