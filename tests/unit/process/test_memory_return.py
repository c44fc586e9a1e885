import asyncio
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from kit.eventually import soon
from process import memory
from process.memory import MemoryReturn


async def test_memory_is_given_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trim = Mock(return_value=1)
    monkeypatch.setattr(memory, "_of_the_c_library", lambda _name: trim)
    running = asyncio.create_task(MemoryReturn(every=0.001).wait())
    await soon(lambda: trim.call_count >= 3)
    running.cancel()
    await asyncio.wait({running})


async def test_where_the_library_cannot_it_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_of_the_c_library", lambda _name: None)
    async with asyncio.timeout(60):
        await MemoryReturn(every=3600).wait()


_IS_APART = """
import ctypes
from process.memory import keep_large_apart

if {called}:
    keep_large_apart()
bytearray(200_000)  # freed at once: from here on such a size is usual
kept = bytearray(200_000)
(heap,) = (line.split()[0] for line in open("/proc/self/maps") if line.endswith("[heap]\\n"))
start, end = (int(address, 16) for address in heap.split("-"))
print(not start <= ctypes.addressof(ctypes.c_char.from_buffer(kept)) < end)
"""


@pytest.mark.skipif(memory._of_the_c_library("mallopt") is None, reason="not the C library of GNU")
@pytest.mark.parametrize("called", [True, False])
def test_what_is_large_is_kept_apart_if_that_is_wanted(called: bool) -> None:
    program = _IS_APART.format(called=called)
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed == f"{called}\n"


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
