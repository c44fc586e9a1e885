import asyncio
import contextlib

import pytest

from process import memory
from process.memory import MemoryReturn


async def test_memory_is_given_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    enough = asyncio.Event()

    def trim(_keep: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            enough.set()
        return 1

    monkeypatch.setattr(memory, "_malloc_trim", lambda: trim)
    running = asyncio.create_task(MemoryReturn(every=0.001).wait())
    async with asyncio.timeout(30):
        await enough.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_where_the_library_cannot_it_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_malloc_trim", lambda: None)
    async with asyncio.timeout(30):
        await MemoryReturn(every=3600).wait()
