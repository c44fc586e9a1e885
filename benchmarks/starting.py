"""The start: with an empty cluster, and with many ManagedResources that need no change."""

import asyncio
import statistics
import time

from benchmarks import report
from benchmarks.measuring import QUIET_SECONDS, Meter, Phase, passed, running
from benchmarks.observer import observing
from benchmarks.originals import START
from benchmarks.program import Agent
from benchmarks.report import Table, number
from benchmarks.workload import Workload, create_namespace
from devcluster.cluster import Cluster

_NAMESPACE = "benchmark"
_SIZE = 2
_COLUMNS = ("cluster", "s until ready", "s until all is looked at", "CPU s", "RSS (peak) MiB", "calls", "the original")


async def measure(*, starts: int, many: int) -> Table:
    async with running() as (cluster, agent, audit):
        meter = Meter(agent, audit)
        empty = [await _start(agent, meter) for _ in range(starts)]
        await _fill(cluster, agent, many)
        full = await _start(agent, meter, count=many)
    ready = statistics.median(phase.ready or 0.0 for phase in empty)
    rows = [
        _row("empty", empty[-1], ready=ready, original=str(START)),
        _row(f"{many} ManagedResources of {_SIZE} objects", full, ready=full.ready),
    ]
    note = f"Empty cluster: median of {starts} starts, memory of the last."
    return Table("Start", _COLUMNS, rows, [note])


def _row(name: str, phase: Phase, *, ready: float | None, original: str = "") -> tuple[str, ...]:
    times = number(ready, 2), number(phase.seconds, 2), number(phase.cpu, 2)
    return name, *times, phase.memory, report.calls(phase.calls), original


async def _start(agent: Agent, meter: Meter, *, count: int = 0) -> Phase:
    """Start the agent, wait until it has reconciled `count` ManagedResources, and stop it."""
    meter.start(fresh=True)
    agent.start()
    ready = await asyncio.to_thread(agent.wait_until_ready)
    await passed(agent, count)
    phase = await meter.stop("start", ready=ready, at=time.monotonic() if count else None)
    await asyncio.to_thread(agent.stop)
    return phase


async def _fill(cluster: Cluster, agent: Agent, many: int) -> None:
    """Let the agent apply `many` ManagedResources, and stop it."""
    async with observing(cluster, _NAMESPACE) as observer:
        await create_namespace(observer.client, _NAMESPACE)
        work = Workload(observer.client, namespace=_NAMESPACE, count=many, size=_SIZE)
        await work.create_secrets()
        await work.create()
        agent.start()
        await observer.until(lambda: observer.applied(_SIZE) == many, what="all to be applied")
        await asyncio.sleep(2 * QUIET_SECONDS)
        await asyncio.to_thread(agent.stop)
