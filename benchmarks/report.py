"""Tables, in their printed form and in that of the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

_INTRODUCTION = """\
Compare calls and ratios first. Seconds depend on the machine, which also runs etcd, API server and measuring program.

- *Calls*: the agent's, from the API server's audit log, without Leases and watches. `events`: calls that write Events.
- *CPU*: user and system time of the process. *To bare*: divided by the CPU of a bare client that only creates
  (replaces, deletes) the same objects with the same libraries in the same run, 16 at once.
- *RSS*: at the end of a phase. *Peak*: the highest within it.
- *The original*: the resource manager in Go, v1.150.0-dev, with the same load on 2 cores and 24 GiB, with etcd 3.6 and
  Kubernetes 1.36. Its times at 500 x 10 were taken while other work ran.
"""


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())

    def __str__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        cells = [_line(line, widths) for line in lines]
        return "\n".join([f"## {self.title}", "", "```", *cells, "```", *(["", *self.notes] if self.notes else []), ""])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def document(tables: Iterable[Table], host: Mapping[str, str]) -> str:
    """The whole report."""
    measured = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = ", ".join([f"Measured {measured}", *(f"{name} {value}" for name, value in host.items())])
    return "\n".join(["# Measurements", "", _INTRODUCTION, f"{machine}.", "", *map(str, tables)])


def calls(counts: Mapping[tuple[str, str], int]) -> str:
    """Calls by verb, Events apart: `1300: 1000 create, 300 patch`."""
    by_verb: dict[str, int] = {}
    for (verb, resource), count in counts.items():
        name = "events" if resource == "events" else verb
        by_verb[name] = by_verb.get(name, 0) + count
    parts = ", ".join(f"{count} {name}" for name, count in sorted(by_verb.items(), key=lambda item: -item[1]))
    return f"{sum(by_verb.values())}: {parts}" if parts else "0"


def number(value: float | None, digits: int = 1) -> str:
    return "" if value is None else f"{value:.{digits}f}"
