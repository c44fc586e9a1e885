"""Shoots that never finish, of one Project: how long objects of others wait for a worker.

    python -m tests.attacks.stuck_shoots

Passes of a controller with twenty workers, as the gardenlet has for Shoots, never end for a hundred Shoots of one
Project; then five other Projects have one each. No control plane is needed: the controller is the real one. What the
local provider does with delays is in `tests/cluster/test_local_provider_extensions.py`.
"""

import asyncio
import time

from kube.objects import Key
from kube.runtime.controller import Controller, Done, Result

_WORKERS, _STUCK, _OTHERS = 20, 100, 5
_PATIENCE_SECONDS = 20.0


async def main() -> None:
    finished: dict[str, float] = {}
    stuck = 0

    async def reconcile(name: Key) -> Result:
        nonlocal stuck
        if name.namespace == "garden-stuck":
            stuck += 1
            await asyncio.Event().wait()
        finished[name.namespace] = time.monotonic()
        return Done()

    controller = Controller("stuck-shoots", reconcile, concurrency=_WORKERS, time_limit=3600.0, stop_within=1.0)
    at_work = asyncio.create_task(controller.run())
    for number in range(_STUCK):
        controller.queue.add(Key("garden-stuck", f"shoot-{number}"))
    await asyncio.sleep(0.5)
    began = time.monotonic()
    for number in range(_OTHERS):
        controller.queue.add(Key(f"garden-{number}", "shoot"))
    while len(finished) < _OTHERS and time.monotonic() < began + _PATIENCE_SECONDS:
        await asyncio.sleep(0.05)
    longest = max((each - began for each in finished.values()), default=0.0)
    print(
        f"| workers taken {stuck} of {_WORKERS} | others finished {len(finished)} of {_OTHERS}, after {longest:.2f} s |"
    )
    at_work.cancel()
    await asyncio.gather(at_work, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
