"""A gardenlet that starts on a seed with many Shoots, all of which are due.

Most of them are hibernated, so that there are objects and no processes; some run on this computer. Some have failed:
those are only tried again by another version.

The first restart has the same version, the second one another. Calls are those in the audit logs, by the second in
which the API server got them, watches and Leases included. Meanwhile a liveness probe is sent ten times a second.
"""

import asyncio
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from benchmarks.report import Table, number
from benchmarks.shoots import Meadow, meadow
from devcluster.audit import Call
from gardener import operations
from gardener.garden.shoots import last_operation
from kube.clock import parse_time, utc_now
from kube.objects import Object, key, spec
from kube.paths import at
from localprocesses.local import is_good, wait_until

_AGENT = "gardenlet/"
_OTHER_VERSION = "v99.0.0"
_PATIENCE_SECONDS = 1800.0
_AT_ONCE = 15
_PROBE_SECONDS, _SCRAPE_SECONDS = 0.1, 1.0
_RENEWED_SECONDS = 2.0
"""Seconds between two renewals of the Lease of the Seed, and of the lock of the leader."""
_COLUMNS = (
    *(
        "version",
        "Shoots",
        "s (awake)",
        "garden: calls, /s (most)",
        "seed: calls, /s (most)",
        "at once",
        "CPU s",
        "RSS (peak)",
    ),
    *("probe: ms (most), bad", "Leases late: s (most)"),
)


async def measure(*, asleep: int, awake: int, failed: int) -> Table:
    """Measure; `failed` of the sleeping Shoots have failed."""
    async with meadow() as place:
        await asyncio.to_thread(place.create, [f"awake-{number_}" for number_ in range(awake)])
        names = [f"asleep-{number_:03}" for number_ in range(asleep)]
        await asyncio.to_thread(place.create, names, asleep=True, at_once=_AT_ONCE)
        gone_wrong = names[:failed]
        rows = [
            await asyncio.to_thread(_restarted, place, gone_wrong, "the same"),
            await asyncio.to_thread(_restarted, place, gone_wrong, "another", f"--version={_OTHER_VERSION}"),
        ]
    notes = [
        f"{awake} Shoots run, {asleep} sleep, of which {failed} have failed and are left alone by the same version.",
        "*s*: from the start of the process until the last Shoot is reconciled, and the last one that runs.",
        "*calls*: all of the process; in all, a second on average, and in the second with the most.",
        "*at once*: Shoots that are worked on, at most. *probe*: `/healthz`, 95th percentile of the time of an answer.",
        f"*Leases*: of Seed and leader, renewed every {_RENEWED_SECONDS:.0f} s; by how much later, 95th percentile.",
    ]
    return Table("Gardenlet: a start with many Shoots", _COLUMNS, rows, notes)


def _restarted(place: Meadow, failed: Sequence[str], name: str, *arguments: str) -> Sequence[str]:
    _fail(place, failed)
    place.stop()
    marks = [audit.mark() for audit in place.audits]
    since, began = utc_now(), time.monotonic()
    program, ready = place.start(*arguments), utc_now()
    with _watched(place, program.probes) as seen:
        due = len(place.shoots()) - (0 if arguments else len(failed))
        what = f"{due} Shoots to be reconciled"
        wait_until(lambda: _reconciled(place, since) >= due, what=what, within=_PATIENCE_SECONDS, pause=1.0)
    seconds = time.monotonic() - began
    calls = [
        audit.calls(since=mark, user_agent=_AGENT, leases=True, watches=True)
        for audit, mark in zip(place.audits, marks, strict=True)
    ]
    late = [seconds for each in calls for seconds in _late(each, since=ready)]
    awake = max(_done_at(each) for each in place.shoots() if at(spec(each), "hibernation", "enabled") is not True)
    gardenlet = place.gardenlet
    return (
        name,
        str(due),
        f"{seconds:.0f} ({(awake - since).total_seconds():.0f})",
        *(_rate(each, seconds) for each in calls),
        str(seen.most_at_once),
        number(gardenlet.cpu_seconds(), 1),
        f"{gardenlet.resident_mib():.0f} ({gardenlet.peak_mib():.0f})",
        f"{_high([1000 * each for each in seen.answers], digits=0)}, {seen.bad}",
        _high(late, digits=1),
    )


def _fail(place: Meadow, names: Sequence[str]) -> None:
    """Mark Shoots as given up by this version."""
    shoots: dict[str, Object] = {key(each).name: each for each in place.shoots()}
    for name in names:
        operation = {**last_operation(shoots[name]), "state": operations.FAILED, "description": "It is given up."}
        place.report(name, {"lastOperation": operation})


def _reconciled(place: Meadow, since: datetime) -> int:
    shoots = place.shoots()
    return sum(last_operation(each).get("state") == operations.SUCCEEDED and _done_at(each) > since for each in shoots)


def _done_at(shoot: Object) -> datetime:
    return parse_time(str(last_operation(shoot)["lastUpdateTime"]))


# --- the process meanwhile


@dataclass(slots=True)
class _Seen:
    """Probes of the process.

    Attributes:
        answers: seconds of each probe.
        bad: number of failed probes.
    """

    answers: list[float] = field(default_factory=list)
    bad: int = 0
    most_at_once: int = 0


@contextmanager
def _watched(place: Meadow, probes: str) -> Iterator[_Seen]:
    """Probe the process during the block; `probes` is host and port."""
    seen, ends = _Seen(), threading.Event()

    def ask() -> None:
        while not ends.wait(_PROBE_SECONDS):
            began = time.monotonic()
            seen.bad += not is_good(f"http://{probes}/healthz")
            seen.answers.append(time.monotonic() - began)

    def scrape() -> None:
        while not ends.wait(_SCRAPE_SECONDS):
            at_work = place.gardenlet.metric('controller_runtime_active_workers{controller="shoot"}')
            seen.most_at_once = max(seen.most_at_once, int(at_work))

    threads = [threading.Thread(target=each) for each in (ask, scrape)]
    for each in threads:
        each.start()
    try:
        yield seen
    finally:
        ends.set()
        for each in threads:
            each.join()


# --- calls


def _received(call: Call) -> datetime:
    return parse_time(str(call.event["requestReceivedTimestamp"])).astimezone(UTC)


def _rate(calls: Sequence[Call], seconds: float) -> str:
    by_second = Counter(_received(each).replace(microsecond=0) for each in calls)
    return f"{len(calls)}, {number(len(calls) / seconds, 0)} ({max(by_second.values())})"


def _late(calls: Iterable[Call], *, since: datetime) -> list[float]:
    """Seconds by which renewals of the Lease in this cluster were late."""
    renewals = (each for each in calls if each.resource == "leases" and each.verb in ("update", "patch"))
    moments = sorted(moment for each in renewals if (moment := _received(each)) >= since)
    return [max(0.0, (after - before).total_seconds() - _RENEWED_SECONDS) for before, after in pairwise(moments)]


def _high(values: Sequence[float], *, digits: int) -> str:
    p95 = statistics.quantiles(values, n=20, method="inclusive")[-1]
    return f"{number(p95, digits)} ({number(max(values), digits)})"
