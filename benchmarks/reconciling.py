"""Creation, change, rest, drift, restart and deletion of ManagedResources."""

import asyncio
import statistics
import time
from collections.abc import Sequence

from benchmarks import report
from benchmarks.bare import Cost, reference
from benchmarks.measuring import Meter, Phase, running, start
from benchmarks.observer import Observer, observing
from benchmarks.originals import RECONCILING
from benchmarks.report import Table, number
from benchmarks.workload import Workload, create_namespace
from kube.objects import key

_NAMESPACE, _BARE_NAMESPACE = "benchmark", "benchmark-bare"
_DRIFT_SECONDS = 120.0
_LAST_LOOK_SECONDS = 65.0
"""Seconds until each ManagedResource has had another pass because of the change."""


async def measure(*, count: int, size: int, rest: float, drifted: int) -> Table:
    async with running() as (cluster, agent, audit), observing(cluster, _NAMESPACE) as observer:
        await create_namespace(observer.client, _BARE_NAMESPACE)
        bare = await reference(cluster.kubeconfig, _BARE_NAMESPACE, count, size)
        await create_namespace(observer.client, _NAMESPACE)
        work = Workload(observer.client, namespace=_NAMESPACE, count=count, size=size)
        await work.create_secrets()
        await start(agent)
        phases = await _phases(Meter(agent, audit), observer, work, rest=rest, drifted=drifted)
    return _table(phases, bare, count=count, size=size, rest=rest)


async def _phases(meter: Meter, observer: Observer, work: Workload, *, rest: float, drifted: int) -> list[Phase]:
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

    await asyncio.sleep(min(rest, _LAST_LOOK_SECONDS))
    meter.start()
    phases.append(await meter.stop("rest", quiet=rest, note=f"{rest:.0f} s"))

    meter.start()
    seconds = await _drift(observer, work, drifted)
    note = f"{len(seconds)} objects: median {statistics.median(seconds):.2f} s, max {max(seconds):.2f} s"
    phases.append(await meter.stop("drift", note=note))

    phases.append(await meter.restart(passes=work.count))

    meter.start()
    await work.delete()
    at = await observer.until(lambda: not observer.managed(), what="all to be deleted")
    phases.append(await meter.stop("delete", at=at))
    return phases


async def _drift(observer: Observer, work: Workload, drifted: int) -> list[float]:
    """Seconds until each object changed by hand, all at once, is repaired."""

    async def one(index: int) -> float:
        began = time.monotonic()
        changed = await work.drift(index)
        at = await observer.until(
            lambda: observer.is_repaired(changed, "2"), what=f"{key(changed)} to be repaired", within=_DRIFT_SECONDS
        )
        return at - began

    return await asyncio.gather(*map(one, range(min(drifted, work.count * (work.size - 3)))))


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
                phase.memory,
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
