"""`python -m benchmarks scale`: how the agent's cost grows with what it looks after.

One curve for each way to grow, with several points each; the slopes are fitted, and reported with the pictures. Points
that would take too long are marked as such.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import fits, machine
from benchmarks.report import Table, number
from benchmarks.scale_points import Bounds, Measure, Missed, Point, by_count, by_nodes, by_services, by_size
from kube.visible_text import printable

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
"""What is fitted and drawn."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [curve.name for curve in CURVES]
    parser.add_argument(
        "curves", nargs="*", metavar="CURVE", choices=[*names, []], help=f"which of {', '.join(names)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, for trying out")
    parser.add_argument("--most", type=float, default=900.0, metavar="SECONDS", help="for one point (default: 900)")
    parser.add_argument("--up-to", type=int, metavar="N", help="leave out larger counts")


async def measure(options: argparse.Namespace) -> tuple[str, bool]:
    """The report; it has no thresholds."""
    parts = [_introduction(machine.description())]
    for curve in CURVES:
        if not options.curves or curve.name in options.curves:
            parts.append(_section(curve, await _measure(curve, options), options.images))
            if options.output is not None:  # what is there already, should it end before its time
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
    from benchmarks import plots  # only a program that draws pays for it

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
    fit = fits.power(drawn)
    return f"{name}; slope {fit.exponent:.2f}" if fit is not None else name


def _in_words(points: Sequence[Point], cost: Callable[[Point], float]) -> str:
    """Its exponent, over all and in the last step, and what one object more costs."""
    pairs = [(point.count, cost(point)) for point in points]
    fit, last = fits.power(pairs), fits.steps(pairs)[-1:]
    each = fits.marginal([(point.objects, cost(point)) for point in points])
    if fit is None or each is None:
        return "no slope from so few points"
    return f"exponent {fit.exponent:.2f}, last step {number(last[0], 2) if last else ''}; {each:.4g} an object"


def _row(point: Point) -> tuple[str, ...]:
    return (
        *(str(point.count), str(point.objects), number(point.seconds), str(point.calls), number(point.cpu)),
        *(number(point.peak, 0), number(point.resident, 0), number(point.rest_cpu, 2)),
        *(number(point.ready, 2), number(point.looked_at), number(point.restart_cpu), number(point.restart_peak, 0)),
    )
