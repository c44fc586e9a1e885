"""The controller manager in a garden with many Projects, Shoots and Seeds: idle, and the cost of single changes.

Every Seed has a Lease that is renewed in the way of gardenlets, until one of them stops.
"""

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.garden import SEED, shoot_in
from benchmarks.measuring import Meter, News, connected
from benchmarks.program import Program
from benchmarks.report import Table, calls, number
from benchmarks.workload import each_of
from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from gardener.api.garden import CREDENTIALS_BINDINGS, PROJECTS, SEEDS, SHOOTS
from gardener.keys import SHOOT_STATUS
from kube.clock import format_micro_time, format_time
from kube.objects import Key, Object, condition, labels, mapping, text
from kube.resources import LEASES
from kube.runtime.cache import Caches, View, without_managed_fields
from kube.runtime.client import Client

_USER_AGENT = "gardener-controller-manager/"
_LEASES = "gardener-system-seed-lease"
_RENEWALS = 4
"""Renewals of a Lease in the time after which its Seed is lost."""
_SETTLING_SECONDS = 10.0
_AT_ONCE = 30
_COLUMNS = ("what", "calls", "each", "median s", "max s", "CPU s", "RSS (peak) MiB", "the original")
_ORIGINALS = {
    "rest": "0 calls, 0.14 s CPU a minute, 120 MiB",
    "project": "median 0.09 s, max 0.64 s",
    "projects": "median 2.1 s, max 3.5 s",
    "seed": "4.9 s",
    "shoots": "7.0 s, 25 patches each 10 s from then on",
}


class _Watched(News):
    """Objects that the controllers write, as another client observes them."""

    def __init__(self, caches: Caches) -> None:
        super().__init__()
        self.projects, self.seeds, self.shoots = (
            caches.acquire(View(kind, without_managed_fields)) for kind in (PROJECTS, SEEDS, SHOOTS)
        )
        for store in (self.projects, self.seeds, self.shoots):
            store.subscribe(self.notify)

    async def synced(self) -> None:
        for store in (self.projects, self.seeds, self.shoots):
            await store.synced.wait()

    def is_ready(self, project: str) -> bool:
        return mapping((self.projects.get(Key("", project)) or {}).get("status")).get("phase") == "Ready"

    def is_labelled(self, namespace: str, shoot: str) -> bool:
        return SHOOT_STATUS in labels(self.shoots.get(Key(namespace, shoot)) or {})

    def are_labelled(self) -> bool:
        return all(SHOOT_STATUS in labels(shoot) for _, shoot in self.shoots.items())

    def is_lost(self, seed: str) -> bool:
        return _status_of(self.seeds.get(Key("", seed)), "GardenletReady") == "Unknown"

    def are_lost(self, seed: str) -> bool:
        shoots = [shoot for _, shoot in self.shoots.items() if mapping(shoot["spec"]).get("seedName") == seed]
        return all(_status_of(shoot, "APIServerAvailable") == "Unknown" for shoot in shoots)


def _shoot(namespace: str, name: str, seed: str) -> Object:
    """Shoot without maintenance for hours, at any time of day."""
    begin, end = (f"{datetime.now(UTC) + timedelta(hours=hours):%H%M%S}+0000" for hours in (12, 13))
    return shoot_in(namespace, name, seedName=seed, maintenance={"timeWindow": {"begin": begin, "end": end}})


def _status_of(obj: Object | None, condition_type: str) -> str:
    return text((condition(obj or {}, condition_type) or {}).get("status"))


async def measure(*, projects: int, shoots: int, seeds: int, rest: float, periods: tuple[float, float]) -> Table:
    """Measure; `periods` are the seconds after which a Seed is lost, and then until its Shoots report it."""
    async with _garden(periods) as (cluster, manager, meter):
        manager.start()
        await asyncio.to_thread(manager.wait_until_ready)
        async with connected(cluster) as (client, caches):
            watched = _Watched(caches)
            await watched.synced()
            actor = _Gardenlets(client, seeds, period=periods[0])
            async with actor.at_work():
                await _fill(client, watched, projects=projects, shoots=shoots, seeds=seeds)
                rows = [row async for row in _rows(meter, watched, client, actor, rest=rest, periods=periods)]
    title = f"Controller manager: {projects} Projects, {shoots} Shoots, {seeds} Seeds"
    notes = [
        f"A Seed is lost after {periods[0]:.0f} s, its Shoots after {periods[1]:.0f} s more; seconds are those beyond.",
        f"*rest*: {rest:.0f} s; *each*: calls for one of them. The original limits the rate of calls for each kind by",
        "itself (50 a second), this program that of all together: here to five times as many. Its seconds were taken",
        "while other work ran.",
    ]
    return Table(title, _COLUMNS, rows, notes)


@asynccontextmanager
async def _garden(periods: tuple[float, float]) -> AsyncIterator[tuple[Cluster, Program, Meter]]:
    settings = {
        "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
        "kind": "ControllerManagerConfiguration",
        "gardenClientConnection": {"qps": 250, "burst": 500},
        "leaderElection": {"leaderElect": False},
        "controllers": {"seed": {"monitorPeriod": f"{periods[0]}s", "shootMonitorPeriod": f"{periods[1]}s"}},
    }
    async with Cluster() as cluster:
        garden = GardenBox(cluster)
        await asyncio.to_thread(garden.install)
        await asyncio.to_thread(garden.add_demo_data)
        with (
            tempfile.TemporaryDirectory() as directory,
            Program(settings, directory=Path(directory), kubeconfig=cluster.kubeconfig, name="manager") as manager,
            contextlib.closing(cluster.audit()) as audit,
        ):
            yield cluster, manager, Meter(manager, audit, user_agent=_USER_AGENT)


class _Gardenlets:
    """Renew the Leases of their Seeds."""

    def __init__(self, client: Client, seeds: int, *, period: float) -> None:
        self._client = client
        self._period = period
        self.seeds = [f"seed-{index}" for index in range(seeds)]
        self.renewed: dict[str, float] = {}

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        renewing = asyncio.create_task(self._renew())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])

    async def _renew(self) -> None:
        while True:
            await each_of(tuple(self.seeds), self._renew_one)
            await asyncio.sleep(self._period / _RENEWALS)

    async def _renew_one(self, seed: str) -> None:
        spec = {"holderIdentity": seed, "leaseDurationSeconds": 40, "renewTime": format_micro_time(datetime.now(UTC))}
        is_new = seed not in self.renewed
        self.renewed[seed] = time.monotonic()
        if is_new:
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": "Lease",
                "metadata": {"name": seed, "namespace": _LEASES},
                "spec": spec,
            }
            await self._client.create(LEASES, lease)
        else:
            await self._client.patch(LEASES, Key(_LEASES, seed), {"spec": spec})


async def _fill(client: Client, watched: _Watched, *, projects: int, shoots: int, seeds: int) -> None:
    async def project(index: int) -> None:
        await _create_project(client, f"p-{index}")

    async def seed(index: int) -> None:
        name = f"seed-{index}"
        await client.create(SEEDS, {**SEEDS.type_meta, "metadata": {"name": name}, "spec": SEED})
        await client.patch(
            SEEDS, name, {"status": {"conditions": [_condition("GardenletReady")]}}, subresource="status"
        )

    async def binding(index: int) -> None:
        local = await client.get(CREDENTIALS_BINDINGS, Key("garden-dev", "local"))
        copied = {name: local[name] for name in ("apiVersion", "kind", "provider", "credentialsRef")}
        meta = {"name": "local", "namespace": f"garden-p-{index}"}
        await client.create(CREDENTIALS_BINDINGS, {**copied, "metadata": meta})

    async def shoot(index: int) -> None:
        place, seed = f"garden-p-{index % projects}", f"seed-{index % seeds}"
        await client.create(SHOOTS, _shoot(place, f"s-{index}", seed))

    await each_of(range(seeds), seed)
    await each_of(range(projects), project)
    await watched.until(
        lambda: all(watched.is_ready(f"p-{index}") for index in range(projects)), what="all Projects to be ready"
    )
    await each_of(range(projects), binding)
    await each_of(range(shoots), shoot)
    await watched.until(watched.are_labelled, what="all Shoots to have been looked at", pause=1.0)
    await asyncio.sleep(_SETTLING_SECONDS)


async def _create_project(client: Client, name: str) -> None:
    spec = {"namespace": f"garden-{name}"}
    meta = {"name": name}
    await client.create(PROJECTS, {**PROJECTS.type_meta, "metadata": meta, "spec": spec})


def _condition(kind: str) -> Object:
    now = format_time(datetime.now(UTC))
    reported = {"status": "True", "reason": "AllWell", "message": "All is well."}
    return {"type": kind, **reported, "lastTransitionTime": now, "lastUpdateTime": now}


async def _rows(
    meter: Meter,
    watched: _Watched,
    client: Client,
    gardenlets: _Gardenlets,
    *,
    rest: float,
    periods: tuple[float, float],
) -> AsyncIterator[Sequence[str]]:
    async def ready(name: str) -> float:
        began = time.monotonic()
        await _create_project(client, name)
        return await watched.until(lambda: watched.is_ready(name), what=f"{name} to be ready") - began

    async def labelled(name: str) -> float:
        began = time.monotonic()
        await client.create(SHOOTS, _shoot("garden-p-0", name, "seed-1"))
        return await watched.until(lambda: watched.is_labelled("garden-p-0", name), what=f"{name}'s label") - began

    async def phase(name: str, count: int, seconds: Sequence[float], *, quiet: float = 3.0) -> Sequence[str]:
        found = await meter.stop(name, quiet=quiet)
        total = sum(found.calls.values())
        times = (number(statistics.median(seconds), 2), number(max(seconds), 2)) if seconds else ("", "")
        original = _ORIGINALS.get(name.partition(":")[0], "")
        each = number(total / count) if count else ""
        return name, calls(found.calls), each, *times, number(found.cpu, 2), found.memory, original

    meter.start()
    yield await phase("rest", 0, (), quiet=rest)
    meter.start()
    yield await phase("project: one after another", 20, [await ready(f"o-{index}") for index in range(20)])
    meter.start()
    seconds = await asyncio.gather(*(ready(f"t-{index}") for index in range(_AT_ONCE)))
    yield await phase(f"projects: {_AT_ONCE} at once", _AT_ONCE, seconds)
    meter.start()
    yield await phase("shoot: one after another", 20, [await labelled(f"n-{index}") for index in range(20)])
    meter.start()
    lost = gardenlets.seeds.pop()
    at = await watched.until(lambda: watched.is_lost(lost), what="the Seed to be lost")
    yield await phase("seed: lost", 1, [at - gardenlets.renewed[lost] - periods[0]], quiet=0)
    meter.start()
    at = await watched.until(lambda: watched.are_lost(lost), what="its Shoots to report it")
    yield await phase("shoots: of the lost Seed", 1, [at - gardenlets.renewed[lost] - sum(periods)])
