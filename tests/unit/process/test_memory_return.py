import asyncio
import contextlib
from pathlib import Path

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

    monkeypatch.setattr(memory, "_of_the_c_library", lambda _name: trim)
    running = asyncio.create_task(MemoryReturn(every=0.001).wait())
    async with asyncio.timeout(60):
        await enough.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_where_the_library_cannot_it_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_of_the_c_library", lambda _name: None)
    async with asyncio.timeout(60):
        await MemoryReturn(every=3600).wait()


# --- how much there may be


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (["1073741824\n", None], 1 << 30),
        (["max\n", None], float("inf")),
        ([None, "1073741824\n"], 1 << 30),
        ([None, "9223372036854771712\n"], float("inf")),
        ([None, None], float("inf")),
    ],
)
def test_the_limit_is_that_of_the_container(tmp_path: Path, contents: list[str | None], expected: float) -> None:
    files = tuple(tmp_path / str(number) for number in range(len(contents)))
    for file, content in zip(files, contents, strict=True):
        if content is not None:
            file.write_text(content)
    assert memory.memory_limit(files) == expected
