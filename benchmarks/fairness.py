"""Delay of drift repairs while thousands of ManagedResources in another namespace are deleted at once.

Each drift is one of another ManagedResource: repairs of the same one in short succession wait longer and longer on
purpose. At the same times a bare client reads and patches a ConfigMap that no program manages, and the readiness of the
agent is probed, which its event loop answers: so a slow agent can be distinguished from a busy machine.
"""

import asyncio
import contextlib
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.measuring import running, start
from benchmarks.observer import Observer, observing
from benchmarks.program import Agent
from benchmarks.report import Table, number
from benchmarks.workload import CONFIG_MAP, Workload, create_namespace
from kube.objects import Key, Object, key
from kube.resources import CONFIG_MAPS

_DELETED, _DRIFTED = "benchmark", "benchmark-other"
_UNMANAGED = "unmanaged"
_QUIET_SECONDS = 5.0
"""Seconds until consequences of the creation are over, such as health checks and events."""
_REST_SECONDS = 15.0
_INTERVAL = 0.5
_DRIFTING = 200
"""Number of drifting ManagedResources, in turn: each has more time than a succession of repairs."""
_COLUMNS = ("", "s", "drifts", "repaired, s", "bare GET, s", "bare PATCH, s", "/readyz, s")


@dataclass(frozen=True, slots=True)
class Phase:
    """Seconds of each drift, read, patch and probe."""

    name: str
    began: float
    drifts: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    patches: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)


async def measure(*, count: int) -> Table:
    async with (
        running() as (cluster, agent, _),
        observing(cluster, _DELETED, objects=False) as deleted,
        observing(cluster, _DRIFTED) as drifted,
    ):
        leaving = await _workload(deleted, _DELETED, count)
        staying = await _workload(drifted, _DRIFTED, _DRIFTING)
        await start(agent)
        for work, observer in ((leaving, deleted), (staying, drifted)):
            await work.create()
            await observer.until(_all_applied(work, observer), what=f"all in {work.namespace} to be applied")
        await asyncio.sleep(_QUIET_SECONDS)
        numbers = itertools.count()
        async with _drifting("idle", agent, drifted, staying, numbers) as rest:
            await asyncio.sleep(_REST_SECONDS)
        async with _drifting(f"deletion of {count}", agent, drifted, staying, numbers) as deletion:
            await leaving.delete()
            ended = await deleted.until(lambda: not deleted.managed(), what="all to be deleted", within=1800.0)
    rows = [_row(rest, _REST_SECONDS), _row(deletion, ended - deletion.began)]
    note = f"{1 / _INTERVAL:.0f} drifts a second, each of another of {_DRIFTING} ManagedResources: median (max)."
    return Table(f"Drift while {count} ManagedResources are deleted", _COLUMNS, rows, [note])


async def _workload(observer: Observer, namespace: str, count: int) -> Workload:
    """ManagedResources of one ConfigMap each, with existing Secrets."""
    await create_namespace(observer.client, namespace)
    unmanaged: Object = {"metadata": {"name": _UNMANAGED, "namespace": namespace}}
    await observer.client.create(CONFIG_MAPS, unmanaged)
    work = Workload(observer.client, namespace=namespace, count=count, size=1, first=CONFIG_MAP)
    await work.create_secrets()
    return work


def _all_applied(work: Workload, observer: Observer) -> Callable[[], bool]:
    return lambda: observer.applied(work.size) == work.count


@contextlib.asynccontextmanager
async def _drifting(
    name: str, agent: Agent, observer: Observer, work: Workload, numbers: "itertools.count[int]"
) -> AsyncIterator[Phase]:
    """Begin a drift and all other measurements twice a second until the end of the block."""
    phase = Phase(name, time.monotonic())
    async with asyncio.TaskGroup() as tasks:

        async def begin() -> None:
            while True:
                for seconds, what in (
                    (phase.drifts, _repair(observer, work, next(numbers) % work.count)),
                    (phase.reads, observer.client.get(CONFIG_MAPS, Key(work.namespace, _UNMANAGED))),
                    (phase.patches, _patch(observer, work.namespace)),
                    (phase.answers, asyncio.to_thread(agent.is_ready)),
                ):
                    tasks.create_task(_timed(seconds, what))
                await asyncio.sleep(_INTERVAL)

        starting = tasks.create_task(begin())
        yield phase
        starting.cancel()


async def _timed(seconds: list[float], what: Awaitable[object]) -> None:
    began = time.monotonic()
    await what
    seconds.append(time.monotonic() - began)


async def _repair(observer: Observer, work: Workload, number: int) -> None:
    changed = await work.drift(number)
    await observer.until(lambda: observer.is_repaired(changed, "1"), what=f"{key(changed)} to be repaired")


async def _patch(observer: Observer, namespace: str) -> None:
    change = {"data": {"at": str(time.monotonic())}}
    await observer.client.patch(CONFIG_MAPS, Key(namespace, _UNMANAGED), change)


def _row(phase: Phase, seconds: float) -> tuple[str, ...]:
    measured = (phase.drifts, phase.reads, phase.patches, phase.answers)
    return phase.name, number(seconds), str(len(phase.drifts)), *map(_median_and_max, measured)


def _median_and_max(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({max(seconds):.2f})"
