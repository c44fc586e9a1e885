"""Creation, change, rest, drift, restart and deletion of ManagedResources."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import report
from benchmarks.bare import Cost, reference
from benchmarks.observer import Observer, observing
from benchmarks.originals import RECONCILING
from benchmarks.program import USER_AGENT, Agent
from benchmarks.report import Table, number
from benchmarks.workload import Workload, create_namespace, install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kube.objects import key

NAMESPACE, _BARE_NAMESPACE = "benchmark", "benchmark-bare"
_QUIET_SECONDS = 3.0
"""Until what follows a phase is over, such as health checks and events."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")
_DRIFT_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What the agent took for one of them."""

    name: str
    calls: dict[tuple[str, str], int]
    seconds: float | None
    ready: float | None = None
    """Seconds until /readyz was good, after a start."""
    cpu: float
    resident: float
    peak: float
    note: str = ""


class Meter:
    """Measures phases one after the other."""

    def __init__(self, agent: Agent, audit: Audit) -> None:
        self._agent = agent
        self._audit = audit
        self._mark, self._cpu, self._began = 0, 0.0, 0.0

    def start(self) -> None:
        self._agent.forget_peak()
        self._mark = self._audit.mark()
        self._cpu, self._began = self._agent.cpu_seconds(), time.monotonic()

    async def stop(self, name: str, *, at: float | None = None, note: str = "", quiet: float = _QUIET_SECONDS) -> Phase:
        """The phase was over `at` that moment; what the agent does just after that counts as calls and CPU."""
        await asyncio.sleep(quiet)
        return Phase(
            name=name,
            seconds=None if at is None else at - self._began,
            cpu=self._agent.cpu_seconds() - self._cpu,
            calls=self._audit.count(since=self._mark, user_agent=USER_AGENT),
            resident=self._agent.resident_mib(),
            peak=self._agent.peak_mib(),
            note=note,
        )


async def measure(*, count: int, size: int, rest: float, drifted: int) -> Table:
    """With a control plane of its own."""
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        with tempfile.TemporaryDirectory() as directory, Agent(cluster, Path(directory)) as agent:
            audit = cluster.audit()
            try:
                async with observing(cluster, NAMESPACE) as observer:
                    await create_namespace(observer.client, _BARE_NAMESPACE)
                    bare = await reference(cluster.kubeconfig, _BARE_NAMESPACE, count, size)
                    await create_namespace(observer.client, NAMESPACE)
                    work = Workload(observer.client, namespace=NAMESPACE, count=count, size=size)
                    phases = await _phases(agent, audit, observer, work, rest=rest, drifted=drifted)
            finally:
                audit.close()
    return _table(phases, bare, count=count, size=size, rest=rest)


async def _phases(
    agent: Agent, audit: Audit, observer: Observer, work: Workload, *, rest: float, drifted: int
) -> list[Phase]:
    await work.create_secrets()
    await start(agent)
    meter = Meter(agent, audit)
    phases = []

    meter.start()
    await work.create()
    at = await observer.until(lambda: observer.applied(work.size) == work.count, what="all to be applied")
    phases.append(await meter.stop("create", at=at))

    before = observer.checksums()
    meter.start()
    await work.change()
    at = await observer.until(
        lambda: observer.applied(work.size, other_than=before) == work.count, what="all to be changed"
    )
    phases.append(await meter.stop("change", at=at))

    meter.start()
    phases.append(await meter.stop("rest", quiet=rest, note=f"{rest:.0f} s"))

    meter.start()
    seconds = await _drift(observer, work, drifted)
    note = f"{len(seconds)} objects: median {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s"
    phases.append(await meter.stop("drift", note=note))

    phases.append(await restart(agent, audit, passes=work.count))

    meter.start()
    await work.delete()
    at = await observer.until(lambda: not observer.managed(), what="all to be deleted")
    phases.append(await meter.stop("delete", at=at))
    return phases


async def start(agent: Agent) -> float:
    """Returns the moment of the start; the agent is ready, leads, and has said so."""
    began = agent.start()
    await asyncio.to_thread(agent.wait_until_ready)
    await asyncio.sleep(_QUIET_SECONDS)
    return began


async def _drift(observer: Observer, work: Workload, drifted: int) -> list[float]:
    """Seconds until each of the objects that were changed by hand, all at once, is as it was."""

    async def one(index: int) -> float:
        began = time.monotonic()
        changed = await work.drift(index)
        at = await observer.until(
            lambda: observer.is_put_right(changed, "2"), what=f"{key(changed)} to be put right", within=_DRIFT_SECONDS
        )
        return at - began

    return await asyncio.gather(*map(one, range(min(drifted, work.count * (work.size - 3)))))


async def restart(
    agent: Agent, audit: Audit, *, passes: int, controller: str = "managedresource", within: float = 600.0
) -> Phase:
    """Until everything was looked at once; with all the CPU that the process has used by then."""
    await asyncio.to_thread(agent.stop)
    mark = audit.mark()
    began = agent.start()
    ready = await asyncio.to_thread(agent.wait_until_ready) - began
    async with asyncio.timeout(within):
        await passed(agent, passes, controller)
    seconds = time.monotonic() - began
    await asyncio.sleep(_QUIET_SECONDS)
    counts = audit.count(since=mark, user_agent=USER_AGENT)
    return Phase(
        name="restart",
        seconds=seconds,
        ready=ready,
        cpu=agent.cpu_seconds(),
        calls=counts,
        resident=agent.resident_mib(),
        peak=agent.peak_mib(),
        note=f"{writes(counts)} writes",
    )


async def passed(agent: Agent, passes: int, controller: str = "managedresource") -> None:
    """Returns when it has looked at so many things.

    Asks seldom enough: with many ManagedResources, an answer costs the agent a tenth of a second.
    """
    while True:
        asked = time.monotonic()
        if await asyncio.to_thread(agent.passes, controller) >= passes:
            return
        await asyncio.sleep(max(0.1, 10 * (time.monotonic() - asked)))


def writes(counts: Mapping[tuple[str, str], int]) -> int:
    """Those that change something, without Events."""
    return sum(n for (verb, resource), n in counts.items() if verb in WRITES and resource != "events")


_BARE_STEPS = {"create": "create", "change": "replace", "delete": "delete"}


def _table(phases: Sequence[Phase], bare: dict[str, Cost], *, count: int, size: int, rest: float) -> Table:
    originals = RECONCILING.get((count, size), {})
    rows = []
    for phase in phases:
        step = bare.get(_BARE_STEPS.get(phase.name, ""))
        total = sum(phase.calls.values())
        is_rest = phase.name == "rest"
        rows.append(
            (
                phase.name,
                report.calls(phase.calls),
                number(total / rest * 60, 0) + " a minute" if is_rest else number(total / count),
                number(phase.seconds),
                number(phase.cpu, 2),
                number(phase.cpu / step.cpu if step and step.cpu else None),
                f"{phase.resident:.0f} ({phase.peak:.0f})",
                phase.note,
                str(originals.get(phase.name, "")),
            )
        )
    columns = ("phase", "calls", "each", "s", "CPU s", "CPU to bare", "RSS (peak) MiB", "", "the original")
    objects = count * size
    costs = ", ".join(
        f"{name} {cost.cpu:.2f} s of CPU ({cost.cpu / objects * 1e3:.2f} ms a call) in {cost.seconds:.1f} s"
        for name, cost in bare.items()
    )
    note = f"The bare client, {objects} objects: {costs}. *each*: calls per ManagedResource."
    return Table(f"{count} ManagedResources of {size} objects", columns, rows, [note])
