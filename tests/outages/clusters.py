"""API servers and etcd."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable

from localprocesses.components import APISERVER, ETCD
from outages.stage import Outcome, Stage


async def api_server_killed(stage: Stage, seconds: float) -> Outcome:
    return await _killed(stage, stage.source.stop_apiserver, stage.source.start_apiserver, seconds)


async def etcd_killed(stage: Stage, seconds: float) -> Outcome:
    return await _killed(stage, stage.source.stop_etcd, stage.source.start_etcd, seconds)


async def _killed(stage: Stage, stop: Callable[..., None], start: Callable[[], None], seconds: float) -> Outcome:
    mark = stage.mark()
    await asyncio.to_thread(stop, kill=True)
    await asyncio.sleep(seconds)
    await asyncio.to_thread(start)
    return await stage.outcome(time.monotonic(), mark=mark)


async def api_server_frozen(stage: Stage, seconds: float) -> Outcome:
    return await _frozen(stage, APISERVER, seconds)


async def etcd_frozen(stage: Stage, seconds: float) -> Outcome:
    return await _frozen(stage, ETCD, seconds)


async def _frozen(stage: Stage, component: str, seconds: float) -> Outcome:
    mark = stage.mark()
    pid = stage.source.component_states()[component]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    return await stage.outcome(time.monotonic(), mark=mark)


async def restored(stage: Stage, seconds: float) -> Outcome:
    """What was changed since the snapshot is lost, and versions begin again there; the agent stays up."""
    snapshot = await asyncio.to_thread(stage.source.snapshot)
    await stage.works()
    for _ in range(3):
        await stage.change()
        await stage.works()
    mark = stage.mark()
    del seconds  # it takes as long as it takes
    await asyncio.to_thread(stage.source.restore, snapshot)
    return await stage.outcome(time.monotonic(), mark=mark)


async def target_away(stage: Stage, seconds: float) -> Outcome:
    mark = stage.mark()
    await asyncio.to_thread(stage.target.stop_apiserver, kill=True)
    await stage.change()
    await asyncio.sleep(seconds)
    await asyncio.to_thread(stage.target.start_apiserver)
    return await stage.outcome(time.monotonic(), mark=mark)
