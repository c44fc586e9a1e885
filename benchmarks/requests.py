"""Requests at a steady pace, and how long their answers took.

`python -m benchmarks.requests PORT` asks until its standard input ends and prints percentiles as JSON. It is a process
of its own, so that it does not wait for what it measures.
"""

import asyncio
import http.client
import json
import select
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

_PAUSE = 0.004
_BODY = json.dumps({"request": {"uid": "u", "object": {"metadata": {"labels": {f"l-{i}": "v" for i in range(40)}}}}})
_STOP_SECONDS = 20.0


@dataclass(slots=True)
class Latency:
    """In milliseconds."""

    count: int = 0
    p50: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


@asynccontextmanager
async def requests(port: int) -> AsyncIterator[Latency]:
    """Asks during the block; what comes out is there after it."""
    found = Latency()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.requests", str(port)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await _line(process)
        yield found
        async with asyncio.timeout(_STOP_SECONDS):
            output, _ = await process.communicate(b"")  # closes its input
        found.count, found.p50, found.p99, found.longest = json.loads(output)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _line(process: asyncio.subprocess.Process) -> None:
    """It says when it begins."""
    if process.stdout is not None:
        await process.stdout.readline()


def _main(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.connect()
    print(flush=True)
    seconds = []
    while not select.select([sys.stdin], [], [], _PAUSE)[0]:
        began = time.perf_counter()
        connection.request("POST", "/", _BODY)
        connection.getresponse().read()
        seconds.append(time.perf_counter() - began)
    connection.close()
    ordered = sorted(second * 1000 for second in seconds) or [0.0]
    last = len(ordered) - 1
    sys.stdout.write(json.dumps([len(seconds), ordered[last // 2], ordered[last * 99 // 100], ordered[last]]))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
