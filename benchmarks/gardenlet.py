"""The gardenlet of a seed without Shoots: its requests to garden and seed, and its usage of the machine.

Garden and seed are two clusters. Requests are counted by the process itself, since audit logs leave probes of an API
server out; its writes are counted in the audit logs.
"""

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measuring import QUIET_SECONDS, writes
from benchmarks.program import Process
from benchmarks.report import Table, number
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.garden.box import GardenBox
from devcluster.garden.seed import GARDENLET, SeedBox
from gardener import keys
from gardener.api.garden import SEEDS
from kube.objects import metadata
from kube.paths import at
from localprocesses.local import wait_until

NAME = "meadow"
_USER_AGENT = "gardenlet/"
_PATIENCE_SECONDS = 60.0
COLUMNS = ("what", "s", "garden: calls, changes", "seed: calls, changes", "CPU s", "RSS (peak) MiB", "the original")
_ORIGINALS = {
    "steady state": "in 60 s 64 and 93 calls, 0.40 s CPU, 138 MiB, with a Shoot",
    "reconcile": "48 and 187 calls",
}


class Gardenlet(Process):
    """Gardenlet of a box, which has started it."""

    def __init__(self, box: SeedBox, seed: Cluster) -> None:
        port = int(box.gardenlet.metrics.rpartition(":")[2].partition("/")[0])
        super().__init__("agent", log=box.gardenlet.log, metrics=port)
        self._box, self._seed = box, seed

    @property
    def pid(self) -> int:
        return int(self._seed.component_states()[GARDENLET]["pid"])

    def check(self) -> None:
        self._box.gardenlet.check()

    def requests_by_host(self) -> dict[tuple[str, str], int]:
        """Requests by host and method, without open watches."""
        found = Counter[tuple[str, str]]()
        for line in self.scrape().splitlines():
            if line.startswith("rest_client_requests_total{"):
                labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
                found[labels["host"], labels["method"]] += int(float(line.rpartition(" ")[2]))
        return found

    def requests(self, cluster: Cluster) -> int:
        """Requests to the API server of a cluster, without open watches."""
        host = f'host="{cluster.url.removeprefix("https://")}"'
        lines = [each for each in self.scrape().splitlines() if each.startswith("rest_client_requests_total{")]
        return int(sum(float(each.rpartition(" ")[2]) for each in lines if host in each))


@dataclass(frozen=True, slots=True)
class Side:
    """Cluster with the requests of the gardenlet to it."""

    cluster: Cluster
    audit: Audit


class Phases:
    """Measures phases one after the other, like `benchmarks.measuring.Meter`, in two clusters."""

    def __init__(self, gardenlet: Gardenlet, *sides: Side, originals: Mapping[str, str]) -> None:
        self._gardenlet, self._sides, self._originals = gardenlet, sides, originals
        self.rows: list[Sequence[str]] = []

    def whole_start(self, seconds: float, marks: Sequence[int]) -> None:
        self._add("start", seconds, marks, [0 for _ in self._sides], 0.0)

    @contextlib.asynccontextmanager
    async def phase(self, name: str, *, quiet: float) -> AsyncIterator[None]:
        self._gardenlet.forget_peak()
        marks = [side.audit.mark() for side in self._sides]
        requests = [self._gardenlet.requests(side.cluster) for side in self._sides]
        cpu, began = self._gardenlet.cpu_seconds(), time.monotonic()
        yield
        seconds = time.monotonic() - began
        await asyncio.sleep(quiet)
        self._add(name, seconds or quiet, marks, requests, cpu)

    def _add(self, name: str, seconds: float, marks: Sequence[int], requests: Sequence[int], cpu: float) -> None:
        process = self._gardenlet
        memory = f"{process.resident_mib():.0f} ({process.peak_mib():.0f})"
        counted = [
            f"{process.requests(side.cluster) - before}, {writes(self._changes(side.audit, mark))}"
            for side, mark, before in zip(self._sides, marks, requests, strict=True)
        ]
        used = number(process.cpu_seconds() - cpu, 2)
        self.rows.append((name, number(seconds, 1), *counted, used, memory, self._originals.get(name, "")))

    @staticmethod
    def _changes(audit: Audit, since: int) -> dict[tuple[str, str], int]:
        return audit.count(since=since, user_agent=_USER_AGENT)


async def measure(*, rest: float) -> Table:
    """Measure, with `rest` seconds of rest."""
    async with Cluster() as garden, Cluster(nodes=1) as seed:
        await asyncio.to_thread(make_garden, garden)
        with contextlib.closing(garden.audit()) as in_garden, contextlib.closing(seed.audit()) as in_seed:
            marks, began = [in_garden.mark(), in_seed.mark()], time.monotonic()
            box = SeedBox(garden, seed, NAME)
            await asyncio.to_thread(box.install)
            phases = Phases(Gardenlet(box, seed), Side(garden, in_garden), Side(seed, in_seed), originals=_ORIGINALS)
            phases.whole_start(time.monotonic() - began, marks)
            await asyncio.sleep(QUIET_SECONDS)
            async with phases.phase("reconcile", quiet=0.0):
                await asyncio.to_thread(_reconcile, garden)
            async with phases.phase("steady state", quiet=0.0):
                await asyncio.sleep(rest)
    notes = [
        "*start*: until the Seed is ready, from a bootstrap token on, with the components of the local profile.",
        "*reconcile*: of the Seed, which changes nothing. One is in each minute of the *steady state*, too.",
        "*changes*: writes, without Leases and Events. The original's Seed has more components.",
    ]
    return Table("Gardenlet: a seed without Shoots", COLUMNS, phases.rows, notes)


def make_garden(cluster: Cluster) -> None:
    box = GardenBox(cluster)
    box.install()
    box.add_demo_data()
    box.start_controllers()


def _reconcile(garden: Cluster) -> None:
    body = {"metadata": {"annotations": {keys.OPERATION: "reconcile"}}}
    requested = metadata(garden.api.patch(SEEDS.path(name=NAME), body))["generation"]

    def is_done() -> bool:
        status = garden.api.get(SEEDS.path(name=NAME))["status"]
        return bool(status["observedGeneration"] >= requested and at(status, "lastOperation", "state") == "Succeeded")

    wait_until(is_done, what="the Seed to be reconciled", within=_PATIENCE_SECONDS, pause=0.05)
