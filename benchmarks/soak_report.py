"""Result of a soak, as a section of the report with pictures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import Table, number
from benchmarks.sampling import SERIES, Curve, Sample
from benchmarks.soak_rules import Finding, assess, between, unexpected

_WARM_UP = 0.25
"""Share of the load that is not checked."""
_COLUMNS = (
    *("level", "idle before", "under load", "highest"),
    *("growth an hour", "growth", "allowed", "idle after"),
)

_CUT = (
    r"is unreachable|[Cc]onnection (was )?reset|[Dd]isconnected|Can not write request body|Connection timeout to host"
)
EXPECTED: Mapping[str, Sequence[str]] = {
    # Watches and connections are cut on purpose, also in the middle of a pass.
    "agent": (
        _CUT,
        # Namespaces go while policies are made in them.
        r"because it is being terminated|namespaces \S+ not found",
        # A ManagedResource and its Secret are deleted at the same moment, and reported by different watches.
        r"could not read secret 'churn-",
        # The load changes a Secret at the moment in which its token is written.
        r"Operation cannot be fulfilled on secrets",
        # A round may take no longer than its period, which is a minute here; on a busy machine that is not much.
        r"exceeded its time limit.*garbage-collector",
    ),
    "webhooks": (_CUT,),
}
"""Expected errors in logs that are due to the load, as regular expressions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    name: str
    limits: str
    samples: Sequence[Sample]
    log: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    minutes: float
    marks: Mapping[str, float]
    """Seconds since the run began."""
    processes: Sequence[Process]
    done: Counter[str]
    failed: Counter[str]
    injected: Counter[str]
    idle_writes: Mapping[tuple[str, str], int]
    """Writes of both processes."""
    averages: Sequence[float]
    """Load averages of the machine."""


def is_good(outcome: Outcome) -> bool:
    findings = [found for each in outcome.processes for found in _findings(each, outcome.marks)]
    return all(found.is_flat and found.has_returned for found in findings) and not any(
        _complaints(each) for each in outcome.processes
    )


def section(outcome: Outcome, host: Mapping[str, str], *, images: Path) -> str:
    """Return the section; pictures are written to the directory `images`."""
    from benchmarks import plots  # imported late: only needed for pictures

    parts = [_introduction(outcome, host)]
    for each in outcome.processes:
        file = images / f"soak-{each.name}.png"
        title = f"{each.name}: {outcome.minutes:g} minutes of mixed load; idle where it is shaded"
        shaded = [(outcome.marks[begin] / 60, outcome.marks[end] / 60) for begin, end in _RESTS]
        panels = [
            plots.Panel(name, {name: _in_minutes(curve(each.samples))}, below="minutes", shaded=shaded)
            for name, curve in SERIES.items()
        ]
        plots.draw(file, title, panels)
        parts += [str(_table(each, outcome.marks)), f"![{each.name}]({images.name}/{file.name})\n"]
    return "\n".join([*parts, _load(outcome)])


_RESTS = (("rest before", "load"), ("rest after", "end"))


def _introduction(outcome: Outcome, host: Mapping[str, str]) -> str:
    measured = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    averages = sorted(outcome.averages)
    averages_in_words = f"{averages[0]:.0f} to {averages[-1]:.0f}, median {averages[len(averages) // 2]:.0f}"
    result = "nothing grows, and all levels return" if is_good(outcome) else "NOT as it should be, see below"
    return f"""\
# Soak: {outcome.minutes:g} minutes of mixed load

Measured until {measured} at {host["commit"]}, {host["system"]}, on {host["processor"]}, which etcd, the API server and
the load share; load of the machine {averages_in_words}. Result: **{result}**.

*Growth*: median of the slopes between all pairs of samples, times the time of the load without its first
{_WARM_UP:.0%}. *Allowed*: growth that counts as none. *Idle after*: four minutes after everything was deleted.
Writes of both processes idle, without Leases: {_writes(outcome)}.
"""


def _writes(outcome: Outcome) -> str:
    counted = sorted(outcome.idle_writes.items())
    return ", ".join(f"{count} {verb} of {resource}" for (verb, resource), count in counted) or "none"


def _table(process: Process, marks: Mapping[str, float]) -> Table:
    rows, notes = [], []
    for found in _findings(process, marks):
        wrong = [*([] if found.is_flat else ["GROWS"]), *([] if found.has_returned else ["DOES NOT RETURN"])]
        notes += [f"{found.series} {each}." for each in wrong]
        rows.append(
            (
                found.series,
                number(found.before),
                number(found.middle),
                number(found.highest),
                f"{found.an_hour:+.2f}",
                f"{found.growth:+.2f}",
                number(found.allowed),
                number(found.after),
            )
        )
    complaints = _complaints(process)
    messages = "; ".join(f"{count} x {message}" for message, count in complaints.most_common(10)) or "none"
    notes.append(f"Manifest: {process.limits}. Unexpected errors in {len(process.log)} log lines: {messages}.")
    expected = _errors(process) - complaints
    if expected:
        notes.append(
            "Expected: " + "; ".join(f"{count} x {message}" for message, count in expected.most_common()) + "."
        )
    return Table(process.name, _COLUMNS, rows, notes)


def _load(outcome: Outcome) -> str:
    counts = [*sorted(outcome.done.items())]
    counts += [(f"broken by the proxy: {name}", count) for name, count in sorted(outcome.injected.items())]
    counts += [(f"failed: {name}", count) for name, count in sorted(outcome.failed.items())]
    return "### Load\n\n" + "; ".join(f"{name} {count}" for name, count in counts) + ".\n"


def _findings(process: Process, marks: Mapping[str, float]) -> list[Finding]:
    load = (marks["load"] + (marks["load ends"] - marks["load"]) * _WARM_UP, marks["load ends"])
    before, after = (tuple(marks[name] for name in rest) for rest in _RESTS)
    found = []
    for series, curve_of in SERIES.items():
        curve = curve_of(process.samples)
        found.append(
            assess(series, between(curve, *load), before=between(curve, *before), after=between(curve, *after))
        )
    return found


def _complaints(process: Process) -> Counter[str]:
    return unexpected(process.log, expected=EXPECTED[process.name])


def _errors(process: Process) -> Counter[str]:
    return unexpected(process.log, expected=())


def _in_minutes(curve: Curve) -> Curve:
    return [(at / 60, value) for at, value in curve]
