"""`python -m benchmarks`: see `python -m benchmarks --help`."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import (
    admission,
    bundle,
    fairness,
    faults,
    garbage,
    handover,
    health,
    machine,
    network_policies,
    nodes,
    reconciling,
    report,
    scale,
    sharding,
    soak,
    starting,
    tokens,
    webhooks,
)
from devcluster.errors import DevclusterError
from kube.errors import KubeError
from process.logging import configure_logging
from process.printable import printable

_REPORT = Path(__file__).parent / "REPORT.md"
_SECTIONS = (
    "start",
    "handover",
    "reconcile",
    "bundle",
    "fairness",
    "health",
    "garbage",
    "policies",
    "nodes",
    "tokens",
    "faults",
    "webhooks",
    "admission",
)
_PROGRAMS = {"scale": scale.main, "sharding": sharding.main, "soak": soak.main}
"""Take long, and have a report of their own; not among the sections."""
_EXAMPLES = """\
examples:
  python -m benchmarks                                 everything, about an hour; writes the report
  python -m benchmarks --quick                         everything in small, for trying out; only prints
  python -m benchmarks reconcile --sizes 100x10        one section in one size; only prints
  python -m benchmarks scale --quick                   how cost grows with size; --help tells more
  python -m benchmarks sharding --count 300            one agent against three that share the work
  python -m benchmarks soak --minutes 45               whether anything grows under a mixed load
"""


Measure = Callable[[], Coroutine[Any, Any, report.Table]]


@dataclass(frozen=True, slots=True)
class Size:
    count: int
    objects: int


def main(arguments: Sequence[str]) -> int:
    # A benchmark that is ended takes control planes and agents along, as with Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if arguments and arguments[0] in _PROGRAMS:
        return _PROGRAMS[arguments[0]](arguments[1:])
    options = _options(arguments)
    configure_logging(level="error", log_format="text")
    host = machine.description()
    tables: list[report.Table] = []
    try:
        for begin in _sections(options):
            began = time.monotonic()
            tables.append(asyncio.run(begin()))
            print(tables[-1], flush=True)
            print(f"({time.monotonic() - began:.0f} s)\n", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        return 130
    except (DevclusterError, KubeError, TimeoutError) as error:
        print(printable(f"error: {str(error) or type(error).__name__}"), file=sys.stderr)
        return 1
    if options.output is not None:
        options.output.write_text(report.document(tables, host))
        print(f"written to {options.output}", file=sys.stderr)
    return 0


def _sections(options: argparse.Namespace) -> list[Measure]:
    quick = options.quick
    faulty = Size(4, 5) if quick else Size(50, 10)
    namespaces, services = (20, 60) if quick else (500, 1500)
    known: dict[str, list[Measure]] = {
        "start": [lambda: starting.measure(starts=5, many=100 if quick else 1000)],
        "handover": [lambda: handover.measure(clean=2 if quick else 20, killed=1 if quick else 5)],
        "reconcile": [_reconciling(size, options) for size in options.sizes],
        "bundle": [lambda: bundle.measure(definitions=12)],
        "fairness": [lambda: fairness.measure(count=100 if quick else 3000)],
        "health": [lambda: health.measure(count=5 if quick else 50, rest=options.rest)],
        "garbage": [lambda: garbage.measure(candidates=600 if quick else 10_000)],
        "nodes": [lambda: nodes.measure(count=20 if quick else 300)],
        "tokens": [lambda: tokens.measure(secrets=50 if quick else 2000, renewal=not quick)],
        "admission": [lambda: admission.measure(pods=50 if quick else 150, rounds=2 if quick else 5)],
        "webhooks": [lambda: webhooks.measure(seconds=2 if quick else 5, rounds=1 if quick else 5)],
        "faults": [lambda: faults.measure(count=faulty.count, size=faulty.objects)],
        "policies": [
            lambda: network_policies.measure(
                namespaces=namespaces, services=services, open_services=20, rest=options.rest
            )
        ],
    }
    return [measure for name in _SECTIONS if name in options.sections for measure in known[name]]


def _reconciling(size: Size, options: argparse.Namespace) -> Measure:
    drifted = 20 if options.quick else 100
    return lambda: reconciling.measure(count=size.count, size=size.objects, rest=options.rest, drifted=drifted)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures what the agent costs, with control planes of its own, and prints tables.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"what to measure: {', '.join(_SECTIONS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and short rests")
    parser.add_argument(
        "--sizes", type=_size, nargs="+", metavar="NxM", help="N ManagedResources of M objects (default: 100x10 500x10)"
    )
    parser.add_argument("--rest", type=float, metavar="SECONDS", help="how long to watch it at rest (default: 300)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report there, whatever was measured")
    options = parser.parse_args(arguments)
    unknown = set(options.sections) - set(_SECTIONS)
    if unknown:
        parser.error(f"unknown section {', '.join(sorted(unknown))}; there are {', '.join(_SECTIONS)}")
    if options.output is None and not (options.sections or options.sizes or options.quick):
        options.output = _REPORT
    quick = options.quick
    options.sections = options.sections or _SECTIONS
    options.sizes = options.sizes or ([Size(20, 10)] if quick else [Size(100, 10), Size(500, 10)])
    options.rest = options.rest or (10.0 if quick else 300.0)
    return options


def _size(text: str) -> Size:
    count, _, objects = text.partition("x")
    if not (count.isdecimal() and objects.isdecimal() and 1 <= int(count) <= 5000 and 4 <= int(objects) <= 1000):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 100x10, with four objects at least")
    return Size(int(count), int(objects))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
