"""The scheduler: rate and cost of placing Shoots, whether Seeds fill up exactly, and Shoots that wait for room.

Seeds are ready, and no gardenlet works on the Shoots that they get.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.garden import SEED, shoot_in
from benchmarks.measuring import Meter, News, Phase, connected
from benchmarks.program import Program
from benchmarks.report import Table, calls, number
from benchmarks.workload import each_of
from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from gardener.api.garden import SEEDS, SHOOTS
from kube.clock import format_time
from kube.objects import Object, mapping, text
from kube.paths import at
from kube.runtime.cache import Caches, View, without_managed_fields
from kube.runtime.client import Client

_USER_AGENT = "gardener-scheduler/"
_NAMESPACE = "garden-dev"
_FULL, _OF_FULL, _PLACES = 4, 200, 40
"""Number of Seeds, of Shoots for them, and of places of each Seed."""
_ROUNDS = 10
_COLUMNS = ("what", "Shoots", "s", "a second", "calls", "each", "CPU s", "ms each", "RSS (peak) MiB", "the original")
_ORIGINALS = {
    "from start": "7.5 a second, 2.0 calls and 51 ms each, 212 (241) MiB",
    "rest": "0 calls, 0.01 s CPU a minute",
    "full": "up to 43 on a Seed",
    "room": "1.0 to 23.6 s, the longer they have waited",
}


class _Watched(News):
    """Shoots, as another client observes them."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self.shoots = caches.acquire(View(SHOOTS, without_managed_fields))
        self.shoots.subscribe(self.notify)

    def placed(self) -> Counter[str]:
        """Number of Shoots by their Seed; empty for those without one."""
        return Counter(text(mapping(shoot["spec"]).get("seedName")) for _, shoot in self.shoots.items())

    def refused(self) -> int:
        """Number of Shoots that report a missing Seed."""
        return sum(at(shoot, "status", "lastOperation", "state") == "Pending" for _, shoot in self.shoots.items())


async def measure(*, shoots: int, seeds: int, rest: float) -> Table:
    """Measure, with `rest` seconds of rest."""
    rows = [*await _pending(shoots, seeds, rest), *await _race()]
    notes = [
        "*from start*: all Shoots wait already when the process starts; with the time that this takes.",
        f"*full*: {_OF_FULL} Shoots come while 5 workers are at work, for {_FULL} Seeds with {_PLACES} places each.",
        f"*room*: seconds from a place more to the binding of one that waits, median and maximum of {_ROUNDS}.",
    ]
    return Table(f"Scheduler: {shoots} Shoots, {seeds} Seeds", _COLUMNS, rows, notes)


async def _pending(shoots: int, seeds: int, rest: float) -> list[Sequence[str]]:
    async with _garden() as (cluster, scheduler, meter), connected(cluster) as (client, caches):
        watched = _Watched(caches)
        await watched.shoots.synced.wait()
        await each_of(range(seeds), lambda index: _seed(client, f"seed-{index}"))
        await each_of(range(shoots), lambda index: client.create(SHOOTS, shoot_in(_NAMESPACE, f"s-{index}")))
        meter.start(fresh=True)
        scheduler.start()
        await asyncio.to_thread(scheduler.wait_until_ready)
        end = await watched.until(lambda: watched.placed()[""] == 0, what="all Shoots to be scheduled", pause=0.05)
        phase = await meter.stop("from start", at=end)
        spread = [count for seed, count in watched.placed().items() if seed]
        meter.start()
        still = await meter.stop("rest", quiet=rest)
    named = f"from start: {min(spread)} to {max(spread)} on a Seed"
    return [_row(named, phase, shoots, phase.seconds), _row(f"rest: {rest:.0f} s", still, 0, None)]


async def _race() -> list[Sequence[str]]:
    async with _garden() as (cluster, scheduler, meter), connected(cluster) as (client, caches):
        watched = _Watched(caches)
        await watched.shoots.synced.wait()
        names = [f"seed-{index}" for index in range(_FULL)]
        await each_of(names, lambda name: _seed(client, name, room=_PLACES))
        scheduler.start()
        await asyncio.to_thread(scheduler.wait_until_ready)
        meter.start()
        await each_of(range(_OF_FULL), lambda index: client.create(SHOOTS, shoot_in(_NAMESPACE, f"s-{index}")))
        left = _OF_FULL - _FULL * _PLACES
        end = await watched.until(lambda: watched.refused() == left == watched.placed()[""], what="Seeds to be full")
        full = await meter.stop("full", at=end)
        most = max(count for seed, count in watched.placed().items() if seed)
        meter.start()
        seconds = [await _room(client, watched, names[0], _PLACES + extra + 1) for extra in range(_ROUNDS)]
        room = await meter.stop("room")
    title = f"full: at most {most} on a Seed, {left} wait"
    times = f"{number(statistics.median(seconds), 3)}, {number(max(seconds), 3)}"
    return [_row(title, full, _OF_FULL, full.seconds), _row("room", room, _ROUNDS, None, seconds=times)]


async def _room(client: Client, watched: _Watched, seed: str, places: int) -> float:
    began = time.monotonic()
    await client.patch(SEEDS, seed, {"status": {"allocatable": {"shoots": places}}}, subresource="status")
    return await watched.until(lambda: watched.placed()[seed] == places, what="a Shoot to get the place") - began


def _row(name: str, phase: Phase, shoots: int, took: float | None, *, seconds: str = "") -> Sequence[str]:
    total = sum(phase.calls.values())
    return (
        name,
        str(shoots) if shoots else "",
        seconds or (number(took, 1) if took else ""),
        number(shoots / took, 1) if took else "",
        calls(phase.calls),
        number(total / shoots, 2) if shoots else "",
        number(phase.cpu, 2),
        number(1000 * phase.cpu / shoots, 1) if shoots else "",
        phase.memory,
        _ORIGINALS[name.partition(":")[0]],
    )


@asynccontextmanager
async def _garden() -> AsyncIterator[tuple[Cluster, Program, Meter]]:
    settings = {
        "apiVersion": "scheduler.config.gardener.cloud/v1alpha1",
        "kind": "SchedulerConfiguration",
        "clientConnection": {"qps": 250, "burst": 500},
        "leaderElection": {"leaderElect": False},
    }
    async with Cluster() as cluster:
        garden = GardenBox(cluster)
        await asyncio.to_thread(garden.install)
        await asyncio.to_thread(garden.add_demo_data)
        with (
            tempfile.TemporaryDirectory() as directory,
            Program(settings, directory=Path(directory), kubeconfig=cluster.kubeconfig, name="scheduler") as scheduler,
            contextlib.closing(cluster.audit()) as audit,
        ):
            yield cluster, scheduler, Meter(scheduler, audit, user_agent=_USER_AGENT)


async def _seed(client: Client, name: str, *, room: int | None = None) -> None:
    obj = {**SEEDS.type_meta, "metadata": {"name": name}, "spec": SEED}
    await client.create(SEEDS, obj)
    now = format_time(datetime.now(UTC))
    ready = {"type": "GardenletReady", "status": "True", "reason": "r", "message": "", "lastUpdateTime": now}
    last = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "", "lastUpdateTime": now}
    status: Object = {"conditions": [{**ready, "lastTransitionTime": now}], "lastOperation": last}
    if room is not None:
        status["allocatable"] = {"shoots": room}
    await client.patch(SEEDS, name, {"status": status}, subresource="status")
