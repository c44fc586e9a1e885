"""The agent, watched for what holds its event loop: `python -m tests.attacks.watched_agent --config FILE`.

A timer of a millisecond is late by what runs before it. How late is measured in CPU time, so that a busy machine does
not count: of the loop's thread, and of the whole process, since C code of another thread may hold the interpreter's
lock (or run beside it, which counts, too). What is longer than some milliseconds is written to the standard error, with
what was seen to run.
"""

import asyncio
import json
import sys
import threading
import time
import traceback
from types import FrameType

import uvloop

from agent.__main__ import main

PREFIX = "HOLD "
_SHOWN_SECONDS = 0.01
_TICK_SECONDS = 0.001
_SAMPLE_SECONDS = 0.004
_FRAMES = 6


class Watch:
    """Of the loop that runs, or will run, in the calling thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._own, self._all = time.thread_time(), time.process_time()
        self._seen: list[str] = []
        threading.Thread(target=self._look, daemon=True, name="watch").start()
        loop.call_soon(self._tick)

    def _tick(self) -> None:
        loop, process = time.thread_time() - self._own, time.process_time() - self._all
        if max(loop, process) > _SHOWN_SECONDS:
            found = json.dumps({"loop": loop, "process": process, "seen": self._seen})
            sys.stderr.write(f"{PREFIX}{found}\n")
        self._seen = []
        self._own, self._all = time.thread_time(), time.process_time()
        self._loop.call_later(_TICK_SECONDS, self._tick)

    def _look(self) -> None:
        own = threading.get_ident()
        while True:
            time.sleep(_SAMPLE_SECONDS)
            if time.process_time() - self._all > _SHOWN_SECONDS:
                self._seen = [_shown(frame) for ident, frame in sys._current_frames().items() if ident != own]


def _shown(frame: FrameType) -> str:
    found = reversed(traceback.extract_stack(frame)[-_FRAMES:])
    return " < ".join(f"{each.filename.rpartition('/')[2]}:{each.lineno} {each.name}" for each in found)


if __name__ == "__main__":
    new_event_loop = uvloop.new_event_loop

    def watched() -> uvloop.Loop:
        loop = new_event_loop()
        Watch(loop)
        return loop

    uvloop.new_event_loop = watched
    main()
