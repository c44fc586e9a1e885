"""Delay until a condition reports that the API server of a Shoot is gone, or back; and the cost of checks of Shoots.

The API server is a process of the local provider. It is stopped and continued, and its Deployment is scaled to zero and
back.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence

from benchmarks.measuring import QUIET_SECONDS
from benchmarks.report import Table, number
from benchmarks.shoots import Meadow, meadow
from gardener.conditions import API_SERVER_AVAILABLE
from kube.objects import condition, text
from kube.resources import DEPLOYMENTS
from localprocesses.local import wait_until

_NAME, _SEED_NAMESPACE, _API_SERVER = "care", "shoot--dev--care", "kube-apiserver"
_LONGEST_SECONDS = 300.0
_ORIGINAL = {"stopped": ("23.1 (83.2)", "30.0")}
"""Seconds after its process was killed: until Progressing (until False); and from ready until True."""
_GOOD, _BAD = ("True",), ("Progressing", "False")


class _Watched:
    """Condition of one Shoot, as users observe it."""

    def __init__(self, place: Meadow) -> None:
        self._place = place

    def until(self, statuses: Sequence[str]) -> float:
        """Wait for one of the statuses, and return the seconds."""
        began = time.monotonic()

        def is_so() -> bool:
            found = condition(self._place.shoot(_NAME), API_SERVER_AVAILABLE) or {}
            return text(found.get("status")) in statuses

        wait_until(is_so, what=f"{API_SERVER_AVAILABLE} to be {statuses}", within=_LONGEST_SECONDS, pause=0.05)
        return time.monotonic() - began

    def row(self, name: str, end: Callable[[], None], begin: Callable[[], None]) -> Sequence[str]:
        """Measure one way to end and begin the API server."""
        self.until(_GOOD)
        end()
        noticed = self.until(_BAD)
        begin()
        returned = self.until(_GOOD)
        down, up = _ORIGINAL.get(name, ("", ""))
        return name, number(noticed, 1), down, number(returned, 1), up


async def measure(*, shoots: int, rest: float) -> Table:
    """Measure with `shoots` running Shoots, for the calls in steady state during `rest` seconds."""
    async with meadow() as place:
        await asyncio.to_thread(place.create, [_NAME, *(f"rest-{each}" for each in range(shoots - 1))])
        calls = await asyncio.to_thread(_calls, place, rest)
        rows = await asyncio.to_thread(_times, place)
    notes = [
        "Until `APIServerAvailable` is not `True`, and until it is again. Both check once a minute.",
        "*the original*: its process was killed; until it was progressing (and `False`), and until it was `True`.",
        f"{shoots} Shoots in steady state, {number(rest, 0)} s, one check a minute each: {calls}.",
    ]
    columns = ("API server", "down: s", "the original", "back: s", "the original")
    return Table("Gardenlet: care of Shoots", columns, rows, notes)


def _times(place: Meadow) -> list[Sequence[str]]:
    watched = _Watched(place)
    pid = place.pid_of(_SEED_NAMESPACE, _API_SERVER)
    return [
        watched.row("stopped", lambda: os.kill(pid, signal.SIGSTOP), lambda: os.kill(pid, signal.SIGCONT)),
        watched.row("scaled", lambda: _scale(place, 0), lambda: _scale(place, 1)),
    ]


def _scale(place: Meadow, replicas: int) -> None:
    path = DEPLOYMENTS.path(namespace=_SEED_NAMESPACE, name=_API_SERVER)
    place.seed_api.patch(path, {"spec": {"replicas": replicas}})


def _calls(place: Meadow, rest: float) -> str:
    time.sleep(QUIET_SECONDS)
    before = place.gardenlet.requests_by_host()
    figures = place.measure(lambda: None, quiet=rest)
    after = place.gardenlet.requests_by_host()
    known = place.hosts
    to_shoots = Counter[str]()
    for (host, method), count in after.items():
        if host not in known:
            to_shoots[method] += count - before.get((host, method), 0)
    requested = ", ".join(f"{count} {method}" for method, count in sorted(to_shoots.items()) if count)
    return f"{requested or 'none'} to Shoots, {figures.garden} calls to the garden, {figures.seed} to the seed"
