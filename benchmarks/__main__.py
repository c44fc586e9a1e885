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
    care,
    command_line,
    controlling,
    fairness,
    garbage,
    garden,
    gardenlet,
    handover,
    health,
    installations,
    machine,
    network_policies,
    nodes,
    reconciling,
    report,
    restarts,
    scale,
    scheduling,
    seed_autoscaling,
    sharding,
    shoots,
    soak,
    starting,
    tokens,
    webhooks,
)
from kube.errors import KubeError
from kube.visible_text import printable
from localprocesses.local import LocalProcessError
from process.logging import configure_logging

_REPORT = Path(__file__).parent / "REPORT.md"
_SECTIONS = (
    "start",
    "handover",
    "reconcile",
    "fairness",
    "health",
    "garbage",
    "policies",
    "nodes",
    "tokens",
    "webhooks",
    "admission",
    "garden",
    "controlling",
    "scheduling",
    "gardenlet",
    "shoots",
    "restarts",
    "care",
    "seed-autoscaling",
    "cli",
)
_IMAGES = Path(__file__).parent / "images"
_EXAMPLES = """\
examples:
  python -m benchmarks                                 all sections, about an hour; writes the report
  python -m benchmarks --quick                         all sections with small sizes, for testing; only prints
  python -m benchmarks reconcile --sizes 100x10        one section with one size; only prints
  python -m benchmarks scale --quick                   how resource usage grows with size; see --help
  python -m benchmarks sharding --count 300            one agent compared to three that share the work
  python -m benchmarks soak --minutes 45               detect growth under a mixed load
"""


Measure = Callable[[], Coroutine[Any, Any, report.Table]]


@dataclass(frozen=True, slots=True)
class Size:
    count: int
    objects: int


def main(arguments: Sequence[str]) -> int:
    # A terminated benchmark ends control planes and agents, as with Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    configure_logging(level="error", log_format="text")
    try:
        if arguments and arguments[0] in _PROGRAMS:
            return _run(_PROGRAMS[arguments[0]], arguments)
        return _run_sections(_options(arguments))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        first = _first(error)
        if not isinstance(first, LocalProcessError | KubeError | TimeoutError):
            raise
        print(printable(f"error: {str(first) or type(first).__name__}"), file=sys.stderr)
        return 1


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@dataclass(frozen=True, slots=True)
class _Program:
    """Long benchmark with a report of its own, which is not among the sections."""

    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace], Coroutine[Any, Any, tuple[str, bool]]]
    """Return the text of the report, and whether the result is good."""


_PROGRAMS = {
    "scale": _Program("Measure how resource usage grows with size.", scale.add_arguments, scale.measure),
    "sharding": _Program("Measure several agents that share work.", sharding.add_arguments, sharding.measure),
    "soak": _Program("Measure a mixed load over a long time.", soak.add_arguments, soak.measure),
}


def _run(program: _Program, arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {arguments[0]}", description=program.description)
    program.add_arguments(parser)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report to this file")
    parser.add_argument("--images", type=Path, metavar="DIR", default=_IMAGES, help="write pictures to this directory")
    options = parser.parse_args(arguments[1:])
    text, is_good = asyncio.run(program.measure(options))
    print(text)
    if options.output is not None:
        options.output.write_text(text)
    return 0 if is_good else 1


def _run_sections(options: argparse.Namespace) -> int:
    host = machine.description()
    tables: list[report.Table] = []
    for begin in _sections(options):
        began = time.monotonic()
        tables.append(asyncio.run(begin()))
        print(tables[-1], flush=True)
        print(f"({time.monotonic() - began:.0f} s)\n", file=sys.stderr, flush=True)
    if options.output is not None:
        options.output.write_text(report.document(tables, host))
        print(f"written to {options.output}", file=sys.stderr)
    return 0


def _sections(options: argparse.Namespace) -> list[Measure]:
    quick = options.quick
    namespaces, services = (20, 60) if quick else (500, 1500)
    known: dict[str, list[Measure]] = {
        "start": [lambda: starting.measure(starts=5, many=100 if quick else 1000)],
        "handover": [lambda: handover.measure(clean=2 if quick else 20, killed=1 if quick else 5)],
        "reconcile": [_reconciling(size, options) for size in options.sizes],
        "fairness": [lambda: fairness.measure(count=100 if quick else 3000)],
        "health": [lambda: health.measure(count=5 if quick else 50, rest=options.rest)],
        "garbage": [lambda: garbage.measure(candidates=600 if quick else 10_000)],
        "nodes": [lambda: nodes.measure(count=20 if quick else 300)],
        "tokens": [lambda: tokens.measure(secrets=50 if quick else 2000, renewal=not quick)],
        "cli": [lambda: command_line.measure(sizes=(20, 50) if quick else (200, 1000), calls=3 if quick else 9)],
        "admission": [lambda: admission.measure(pods=50 if quick else 150, rounds=2 if quick else 5)],
        "webhooks": [lambda: webhooks.measure(seconds=2 if quick else 5, rounds=1 if quick else 5)],
        "garden": [
            lambda: garden.measure(
                seconds=2 if quick else 5,
                rounds=1 if quick else 5,
                shoots=100 if quick else 1000,
                seeds=50,
                applied=3 if quick else 15,
            )
        ],
        "scheduling": [
            lambda: scheduling.measure(
                shoots=100 if quick else 1000, seeds=20 if quick else 100, rest=min(options.rest, 60.0)
            )
        ],
        "care": [lambda: care.measure(shoots=2 if quick else 10, rest=min(options.rest, 180.0))],
        "gardenlet": [
            lambda: gardenlet.measure(rest=min(options.rest, 60.0)),
            lambda: installations.measure(count=20 if quick else 200, rest=min(options.rest, 60.0)),
        ],
        "shoots": [
            lambda: shoots.measure_life(lives=1 if quick else 3),
            lambda: shoots.measure_rest(
                awake=(1, 2) if quick else (1, 5, 10), asleep=5 if quick else 190, rest=min(options.rest, 60.0)
            ),
        ],
        "restarts": [
            lambda: restarts.measure(asleep=12 if quick else 194, awake=1 if quick else 6, failed=3 if quick else 10)
        ],
        "seed-autoscaling": [_seed_autoscaling(options)],
        "controlling": [_controlling(count, options) for count in ((50,) if quick else (500, 5000))],
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


def _controlling(shoots: int, options: argparse.Namespace) -> Measure:
    projects, periods = (5, (6.0, 4.0)) if options.quick else (50, (40.0, 60.0))
    return lambda: controlling.measure(
        projects=projects, shoots=shoots, seeds=20, rest=min(options.rest, 120.0), periods=periods
    )


def _seed_autoscaling(options: argparse.Namespace) -> Measure:
    image = None if options.output is None else _IMAGES / "seed-autoscaling.png"
    return lambda: seed_autoscaling.measure(shoots=1000 if options.quick else 10_000, image=image)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure the resource usage of the agent with separate control planes, and print tables.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"sections to measure: {', '.join(_SECTIONS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="use small sizes and short idle times")
    parser.add_argument(
        "--sizes",
        type=_size,
        nargs="+",
        metavar="NxM",
        help="measure N ManagedResources of M objects (default: 100x10 500x10)",
    )
    parser.add_argument(
        "--rest", type=float, metavar="SECONDS", help="seconds to measure the idle agent (default: 300)"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the report to this file, even for some sections only"
    )
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
