"""The start: with an empty cluster, and with many ManagedResources that are as they should be."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import report
from benchmarks.observer import observing
from benchmarks.originals import START
from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, number
from benchmarks.workload import Workload, create_namespace, install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster

_NAMESPACE = "benchmark"
_SIZE = 2
_QUIET_SECONDS = 3.0
_COLUMNS = ("cluster", "s until ready", "s until all is looked at", "CPU s", "RSS (peak) MiB", "calls", "the original")


async def measure(*, starts: int, many: int) -> Table:
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        with tempfile.TemporaryDirectory() as directory, Agent(cluster, Path(directory)) as agent:
            audit = cluster.audit()
            try:
                empty = [await _start(agent, audit, count=0) for _ in range(starts)]
                ready = statistics.median(row.ready for row in empty)
                full = await _with_many(cluster, agent, audit, many)
            finally:
                audit.close()
    rows = [
        empty[-1].cells("empty", ready=ready, original=str(START)),
        full.cells(f"{many} ManagedResources of {_SIZE} objects", ready=full.ready),
    ]
    return Table("Start", _COLUMNS, rows, [f"Empty cluster: median of {starts} starts, memory of the last."])


class _Start:
    def __init__(self, agent: Agent, *, ready: float, done: float | None, calls: dict[tuple[str, str], int]) -> None:
        self.ready = ready
        self._done = done
        self._calls = calls
        self._cpu = agent.cpu_seconds()
        self._memory = f"{agent.resident_mib():.0f} ({agent.peak_mib():.0f})"

    def cells(self, name: str, *, ready: float, original: str = "") -> tuple[str, ...]:
        calls = report.calls(self._calls)
        return name, number(ready, 2), number(self._done, 2), number(self._cpu, 2), self._memory, calls, original


async def _start(agent: Agent, audit: Audit, *, count: int) -> _Start:
    """Starts the agent, waits until so many ManagedResources were looked at, and stops it."""
    mark = audit.mark()
    began = agent.start()
    ready = await asyncio.to_thread(agent.wait_until_ready) - began
    async with asyncio.timeout(600):
        while await asyncio.to_thread(agent.passes) < count:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
    done = time.monotonic() - began if count else None
    await asyncio.sleep(_QUIET_SECONDS)
    result = _Start(agent, ready=ready, done=done, calls=audit.count(since=mark, user_agent=USER_AGENT))
    await asyncio.to_thread(agent.stop)
    return result


async def _with_many(cluster: Cluster, agent: Agent, audit: Audit, many: int) -> _Start:
    async with observing(cluster, _NAMESPACE) as observer:
        await create_namespace(observer.client, _NAMESPACE)
        work = Workload(observer.client, namespace=_NAMESPACE, count=many, size=_SIZE)
        await work.create_secrets()
        await work.create()
        agent.start()
        await observer.until(lambda: observer.applied(_SIZE) == many, what="all to be applied")
        await asyncio.sleep(2 * _QUIET_SECONDS)
        await asyncio.to_thread(agent.stop)
    return await _start(agent, audit, count=many)
