"""Thousands of Events about one Service: the memory that reading its warnings takes, and the time.

    python -m tests.attacks.many_events [number]

Pages come from a client that makes Events of 4 KiB as they are read, so that no control plane is needed.
"""

import asyncio
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

from agent.resource_manager.common.service_events import SHOWN, warnings_about
from kube.objects import Key, Object
from kube.runtime.client import Client

_PAGE = 500


class EndlessEvents(Client):
    def __init__(self, number: int) -> None:
        self.number = number

    async def pages(self, *_arguments: Any, **_options: Any) -> AsyncIterator[list[Object]]:
        for first in range(0, self.number, _PAGE):
            yield [_event(each) for each in range(first, min(first + _PAGE, self.number))]


def _event(number: int) -> Object:
    last = f"2026-01-{number % 28 + 1:02}T12:00:00Z"
    return {"message": f"{number} ".ljust(4096, "x"), "count": 1, "firstTimestamp": last, "lastTimestamp": last}


def main(number: int) -> int:
    tracemalloc.start()
    began = time.monotonic()
    reported = asyncio.run(warnings_about(EndlessEvents(number), Key("n", "service")))
    peak = tracemalloc.get_traced_memory()[1] / (1 << 20)
    print(f"| {number} Events | peak {peak:.0f} MiB | {time.monotonic() - began:.1f} s |")
    return 0 if reported.count("\n") == SHOWN and peak < 200 else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 100_000))
