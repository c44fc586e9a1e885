"""`python -m benchmarks scale`: the agent's cost by the number of objects.

One curve for each way to grow, with several points each; the slopes are fitted, and reported with the pictures. Points
that would take too long are marked as such.
"""

import argparse
import asyncio
import math
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from benchmarks import machine, network_policies, nodes
from benchmarks.measuring import Meter, News, Phase, connected, running, start, writes
from benchmarks.network_policies import Policies, namespace, service
from benchmarks.observer import observing
from benchmarks.program import PATIENT_ELECTION, Agent
from benchmarks.report import Table, number
from benchmarks.workload import Workload, create_namespace, each_of
from devcluster.audit import Audit
from kube.resources import NAMESPACES, NODES, SERVICES
from kube.runtime.cache import View
from kube.visible_text import printable
from localprocesses.local import LocalProcessError

_NAMESPACE = "benchmark"
_SECTIONS = {"leaderElection": PATIENT_ELECTION}
_CLIENTS = 5
"""Number of namespaces from which each Service is reached, without its own."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Maximum seconds until everything exists, and seconds of rest."""

    most: float
    rest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Times in seconds, memory in MiB."""

    count: int
    """Number of the growing objects."""
    objects: int
    """Number of all managed objects."""
    seconds: float
    calls: int
    cpu: float
    peak: float
    resident: float
    rest_cpu: float
    rest_calls: int
    ready: float
    looked_at: float
    """Seconds until everything was reconciled once after a restart."""
    restart_cpu: float
    restart_peak: float
    restart_writes: int


@dataclass(frozen=True, slots=True)
class Missed:
    """A point that was not reached."""

    count: int
    why: str


Measure = Callable[[int, Bounds], Awaitable[Point | Missed]]


def by_count(size: int) -> Measure:
    """Measure by the number of ManagedResources of `size` objects."""
    return lambda count, bounds: _managed(count, count=count, size=size, bounds=bounds)


def by_size(count: int) -> Measure:
    """Measure by the size of `count` ManagedResources."""
    return lambda size, bounds: _managed(size, count=count, size=size, bounds=bounds)


async def _managed(grown: int, *, count: int, size: int, bounds: Bounds) -> Point | Missed:
    async with (
        running(sections=_SECTIONS) as (cluster, agent, audit),
        observing(cluster, _NAMESPACE, objects=False) as observer,
    ):
        await create_namespace(observer.client, _NAMESPACE)
        work = Workload(observer.client, namespace=_NAMESPACE, count=count, size=size)
        await work.create_secrets()

        def all_applied() -> bool:
            agent.check()
            return observer.applied(size) == count

        async def create() -> float:
            await work.create()
            return await observer.until(
                all_applied,
                what="all to be applied",
                within=bounds.most,
                pause=_LOOK_SECONDS,
                explain=lambda: f"; {observer.applied(size)} of {count} were",
            )

        return await _point(agent, audit, create, count=grown, objects=count * size, bounds=bounds, passes=count)


async def by_nodes(count: int, bounds: Bounds) -> Point | Missed:
    """Measure with `count` Nodes that wait for the pods of three DaemonSets.

    The pods come with their Nodes: the DaemonSet controller would need all of the machine for thousands of Nodes.
    """
    async with (
        running(controllers=nodes.CONTROLLERS, sections=_SECTIONS) as (cluster, agent, audit),
        connected(cluster) as (client, caches),
    ):
        news, store = News(), caches.acquire(View(NODES, nodes.node_state))
        await store.synced.wait()
        store.subscribe(news.notify)
        await asyncio.to_thread(cluster.stop_controllers)
        components = await nodes.make_components(client)

        def free() -> int:
            return sum(not node.has_taint and node.delay is not None for _, node in store.items())

        async def join() -> float:
            await nodes.join(client, range(count), components=components)
            return await news.until(
                lambda: free() == count,
                what="all Nodes to be free",
                within=bounds.most,
                pause=_LOOK_SECONDS,
                explain=lambda: f"; {free()} of {count} were",
            )

        return await _point(agent, audit, join, count=count, objects=count, bounds=bounds, passes=0)


async def by_services(count: int, bounds: Bounds) -> Point | Missed:
    """Measure with `count` Services in a tenth as many namespaces, with two policies for each of six namespaces."""
    spread = max(count // 10, _CLIENTS + 1)
    async with (
        running(controllers=network_policies.CONTROLLERS, sections=_SECTIONS) as (cluster, agent, audit),
        connected(cluster) as (client, caches),
    ):
        policies = Policies(caches)
        for number in range(spread):
            await client.create(NAMESPACES, namespace(f"scale-{number}", is_client=number < _CLIENTS))
        # A Service's own namespace is among those that it lets in by its own policies.
        wanted = sum(2 * (_CLIENTS + (number % spread >= _CLIENTS)) for number in range(count))

        async def create() -> float:
            await each_of(range(count), lambda i: client.create(SERVICES, service(f"s-{i}", f"scale-{i % spread}")))
            return await policies.are(wanted, within=bounds.most)

        return await _point(
            agent, audit, create, count=count, objects=wanted, bounds=bounds, passes=count, controller="networkpolicy"
        )


# --- common parts


async def _point(
    agent: Agent,
    audit: Audit,
    create: Callable[[], Awaitable[float]],
    *,
    count: int,
    objects: int,
    bounds: Bounds,
    passes: int,
    controller: str = "managedresource",
) -> Point | Missed:
    await start(agent)
    meter = Meter(agent, audit)
    meter.start()
    try:
        async with asyncio.timeout(bounds.most * 1.5):
            created = await meter.stop("create", at=await create())
            meter.start()
            rest = await meter.stop("rest", quiet=bounds.rest)
        again = await meter.restart(passes=passes, controller=controller, within=bounds.most)
    except (LocalProcessError, TimeoutError) as error:
        return Missed(count, str(error) or f"longer than {bounds.most * 1.5:.0f} s")
    return _result(created, rest, again, count=count, objects=objects)


def _result(created: Phase, rest: Phase, again: Phase, *, count: int, objects: int) -> Point:
    return Point(
        count=count,
        objects=objects,
        seconds=created.seconds or 0.0,
        calls=sum(created.calls.values()),
        cpu=created.cpu,
        peak=created.peak,
        resident=rest.resident,
        rest_cpu=rest.cpu,
        rest_calls=sum(rest.calls.values()),
        ready=again.ready or 0.0,
        looked_at=again.seconds or 0.0,
        restart_cpu=again.cpu,
        restart_peak=again.peak,
        restart_writes=writes(again.calls),
    )


_COLUMNS = (
    *("", "objects", "s", "calls", "CPU s", "peak MiB", "idle MiB", "CPU s idle"),
    *("ready again s", "reconciled s", "CPU s", "peak MiB"),
)


@dataclass(frozen=True, slots=True)
class Curve:
    """One way to grow."""

    name: str
    unit: str
    measure: Measure
    counts: Sequence[int]
    quick: Sequence[int]


CURVES = (
    Curve("managed-resources", "ManagedResources of 10 objects", by_count(10), (100, 300, 1000, 2000, 5000), (5, 10)),
    Curve("objects", "objects in each of 100 ManagedResources", by_size(100), (10, 30, 100, 200), (5, 10)),
    Curve("nodes", "Nodes with three critical pods", by_nodes, (10, 100, 300, 1000, 2000, 5000), (2, 4)),
    Curve("services", "Services let in by 6 namespaces", by_services, (10, 100, 300, 1000), (8, 16)),
)

_COSTS: Mapping[str, Callable[[Point], float]] = {
    "CPU, s": lambda point: point.cpu,
    "calls": lambda point: float(point.calls),
    "idle memory, MiB": lambda point: point.resident,
    "restart: CPU, s": lambda point: point.restart_cpu,
}
"""Fitted and plotted costs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [curve.name for curve in CURVES]
    parser.add_argument(
        "curves",
        nargs="*",
        metavar="CURVE",
        choices=[*names, []],
        help=f"curves to measure: {', '.join(names)} (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="use small sizes, for testing")
    parser.add_argument(
        "--most", type=float, default=900.0, metavar="SECONDS", help="time limit of a point (default: 900)"
    )
    parser.add_argument("--up-to", type=int, metavar="N", help="omit larger counts")


async def measure(options: argparse.Namespace) -> tuple[str, bool]:
    """Return the report; it has no thresholds."""
    parts = [_introduction(machine.description())]
    for curve in CURVES:
        if not options.curves or curve.name in options.curves:
            parts.append(_section(curve, await _measure(curve, options), options.images))
            if options.output is not None:  # the points so far, in case it ends early
                options.output.write_text("\n".join(parts))
    return "\n".join(parts), True


async def _measure(curve: Curve, options: argparse.Namespace) -> list[Point | Missed]:
    bounds = Bounds(most=options.most, rest=5.0 if options.quick else 20.0)
    found = []
    for count in curve.quick if options.quick else curve.counts:
        if options.up_to is None or count <= options.up_to:
            began = time.monotonic()
            found.append(await curve.measure(count, bounds))
            print(printable(f"({time.monotonic() - began:.0f} s: {found[-1]})"), file=sys.stderr, flush=True)
            if isinstance(found[-1], Missed):
                break
    return found


def _introduction(host: Mapping[str, str]) -> str:
    measured = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"""\
# How cost grows

Measured from {measured} on at {host["commit"]}, {host["system"]}, on {host["processor"]}, which etcd and the API server
share; load of the machine at the start {host["load at the start"]}. Each point has a control plane and an agent of its
own. Columns from *ready again* on: after a restart. *Exponent*: the slope in a diagram with logarithmic axes; 1 is
linear.
"""


def _section(curve: Curve, found: Sequence[Point | Missed], images: Path) -> str:
    from benchmarks import plots  # imported late: only needed for pictures

    points = [each for each in found if isinstance(each, Point)]
    notes = [f"{name}: {_in_words(points, cost)}." for name, cost in _COSTS.items()]
    calls = max((point.rest_calls for point in points), default=0)
    writes = max((point.restart_writes for point in points), default=0)
    notes.append(f"At most {calls} idle calls, {writes} writes by a restart.")
    notes += [f"{each.count} not reached: {each.why}." for each in found if isinstance(each, Missed)]
    text = str(Table(f"By the number of {curve.unit}", _COLUMNS, [_row(point) for point in points], [" ".join(notes)]))
    if len(points) < 2:
        return text
    file = images / f"scale-{curve.name}.png"
    curves = {name: [(point.count, cost(point)) for point in points] for name, cost in _COSTS.items()}
    panels = [
        plots.Panel(_titled(name, drawn), {name: drawn}, below=curve.unit, logarithmic=True)
        for name, drawn in curves.items()
    ]
    plots.draw(file, f"Cost by number of {curve.unit}", panels)
    return f"{text}\n![{curve.unit}]({images.name}/{file.name})\n"


def _titled(name: str, drawn: Sequence[tuple[float, float]]) -> str:
    fit = power(drawn)
    return f"{name}; slope {fit.exponent:.2f}" if fit is not None else name


def _in_words(points: Sequence[Point], cost: Callable[[Point], float]) -> str:
    """Exponent, over all and in the last step, and cost of one more object."""
    pairs = [(point.count, cost(point)) for point in points]
    fit, last = power(pairs), steps(pairs)[-1:]
    each = marginal([(point.objects, cost(point)) for point in points])
    if fit is None or each is None:
        return "no slope from so few points"
    return f"exponent {fit.exponent:.2f}, last step {number(last[0], 2) if last else ''}; {each:.4g} an object"


def _row(point: Point) -> tuple[str, ...]:
    return (
        *(str(point.count), str(point.objects), number(point.seconds), str(point.calls), number(point.cpu)),
        *(number(point.peak, 0), number(point.resident, 0), number(point.rest_cpu, 2)),
        *(number(point.ready, 2), number(point.looked_at), number(point.restart_cpu), number(point.restart_peak, 0)),
    )


# --- cost by the number of objects: pure functions


@dataclass(frozen=True, slots=True)
class Fit:
    """`cost = factor * count ** exponent`, the straight line in a diagram with logarithmic axes."""

    exponent: float
    factor: float


def power(points: Sequence[tuple[float, float]]) -> Fit | None:
    """Fit by least squares of the logarithms; None for fewer than two counts, or costs that are not above 0."""
    logs = [(math.log(count), math.log(cost)) for count, cost in points if count > 0 and cost > 0]
    line = _line(logs)
    return None if line is None else Fit(exponent=line[1], factor=math.exp(line[0]))


def marginal(points: Sequence[tuple[float, float]]) -> float | None:
    """Cost of one more: the slope of the line through all points."""
    line = _line(points)
    return None if line is None else line[1]


def steps(points: Sequence[tuple[float, float]]) -> list[float]:
    """Exponent from each point to the next: a cost that begins to grow faster shows in the last ones."""
    fits = [power(pair) for pair in pairwise(points)]
    return [fit.exponent for fit in fits if fit is not None]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Height at 0 and slope of the line; None if all points are at one place."""
    if len({x for x, _ in points}) < 2:
        return None
    slope, height = statistics.linear_regression(*zip(*points, strict=True))
    return height, slope
