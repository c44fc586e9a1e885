"""Resources and activity of a process, as the kernel and its own `/metrics` report them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """State of a process at one time."""

    at: float
    """Seconds since the run began."""
    resident: float
    """MiB."""
    files: int
    threads: int
    cpu: float
    """Seconds since its start; so are the calls."""
    calls: float
    tasks: float
    watches: float
    queued: float


def sample(pid: int, metrics: str, *, at: float) -> Sample:
    """Take a sample; `metrics` is the answer of the process at `/metrics`."""
    proc = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    sums = sums_of(metrics)
    return Sample(
        at=at,
        resident=int(status["VmRSS"].split()[0]) / 1024,
        files=sum(1 for _ in (proc / "fd").iterdir()),
        threads=int(status["Threads"]),
        cpu=(int(fields[11]) + int(fields[12])) / _TICKS,
        calls=sums.get("rest_client_requests_total", 0.0),
        tasks=sums.get("asyncio_tasks", 0.0),
        watches=sums.get("rest_client_open_watches", 0.0),
        queued=sums.get("workqueue_depth", 0.0),
    )


def sums_of(metrics: str) -> dict[str, float]:
    """Sum over all series of each name."""
    sums: dict[str, float] = {}
    for line in metrics.splitlines():
        if line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name = series.partition("{")[0]
            sums[name] = sums.get(name, 0.0) + float(value)
    return sums


Curve = Sequence[tuple[float, float]]
"""Times and values."""


def _level(name: str) -> Callable[[Sequence[Sample]], Curve]:
    return lambda samples: [(each.at, float(getattr(each, name))) for each in samples]


def _rate(name: str, *, factor: float = 1.0, seconds: float = 60.0) -> Callable[[Sequence[Sample]], Curve]:
    """Growth rate of a count over a minute, since activity in turns would look like noise."""

    def curve(samples: Sequence[Sample]) -> Curve:
        return [
            (last.at, (getattr(last, name) - getattr(first, name)) / (last.at - first.at) * factor)
            for first, last in pairwise(_every(samples, seconds))
        ]

    return curve


def _every(samples: Iterable[Sample], seconds: float) -> list[Sample]:
    chosen: list[Sample] = []
    for each in samples:
        if not chosen or each.at - chosen[-1].at >= seconds:
            chosen.append(each)
    return chosen


SERIES: Mapping[str, Callable[[Sequence[Sample]], Curve]] = {
    "RSS, MiB": _level("resident"),
    "file descriptors": _level("files"),
    "threads": _level("threads"),
    "tasks": _level("tasks"),
    "watches": _level("watches"),
    "keys waiting": _level("queued"),
    "CPU, % of a core": _rate("cpu", factor=100.0),
    "API calls a minute": _rate("calls", factor=60.0),
}
"""Series that are checked and plotted."""
