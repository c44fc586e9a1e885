"""`python -m tests.outages`: which outages are simulated, and the table of what was seen.

Each has a control plane of its own on loopback addresses, at most ten minutes, and ends by itself.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kube.errors import KubeError
from kube.visible_text import printable
from localprocesses.local import LocalProcessError
from outages import access, admission, clusters, machine
from outages.access import Names
from outages.stage import NAME, NotRecovered, Outcome, Stage, working
from outages.stage import clusters as control_planes

_LIMIT_SECONDS = 600.0
_HOUR = 3600.0


class Impossible(Exception):
    """Not on this machine."""


@dataclass(frozen=True, slots=True)
class Outage:
    what: str
    lasted: str
    play: Callable[[Path], Awaitable[Outcome]]


async def _of_agent(work: Callable[[Stage], Awaitable[Outcome]], directory: Path, *, apart: bool = False) -> Outcome:
    async with control_planes(apart=apart) as (source, target), working(source, target, directory) as stage:
        return await work(stage)


async def _of_clock(jump: float, seconds: float, directory: Path) -> Outcome:
    async def work(stage: Stage) -> Outcome:
        if not stage.clock.is_movable:
            raise Impossible("there is no libfaketime")
        return await machine.clock_jumped(stage, jump, seconds)

    return await _of_agent(work, directory)


async def _of_names(seconds: float, directory: Path) -> Outcome:
    names = Names(directory)
    if not names.is_possible():
        raise Impossible("a mount namespace is not permitted")
    async with (
        control_planes() as (source, target),
        working(source, target, directory, prefix=names.prefix, host=NAME) as stage,
    ):
        return await access.names_away(stage, names, seconds)


async def _of_servers(work: Callable[[admission.Servers], Awaitable[Outcome]], directory: Path) -> Outcome:
    del directory
    async with control_planes() as (cluster, _), admission.serving(cluster) as stage:
        return await work(stage)


def _agent(
    what: str, seconds: float, play: Callable[[Stage, float], Awaitable[Outcome]], *, apart: bool = False
) -> Outage:
    lasted = f"{seconds:.0f} s" if seconds else "-"
    return Outage(what, lasted, partial(_of_agent, lambda stage: play(stage, seconds), apart=apart))


OUTAGES: Mapping[str, Outage] = {
    "api-server-killed": _agent("API server killed", 30, clusters.api_server_killed),
    "api-server-killed-briefly": _agent("API server killed, briefly", 3, clusters.api_server_killed),
    "api-server-frozen": _agent("API server frozen (SIGSTOP)", 30, clusters.api_server_frozen),
    "etcd-killed": _agent("etcd killed", 30, clusters.etcd_killed),
    "etcd-frozen": _agent("etcd frozen (SIGSTOP)", 30, clusters.etcd_frozen),
    "restored": _agent("etcd restored from a snapshot", 0, clusters.restored),
    "target-away": _agent("API server of the target killed", 120, clusters.target_away, apart=True),
    "serving-certificate": _agent("new serving certificate of the API server", 0, access.serving_certificate),
    "authority": _agent("new CA, after both were in the file for a while", 5, access.authority),
    "token": _agent("token expired before there was a new one", 30, access.token),
    "kubeconfig": _agent("kubeconfig replaced: another address, the old one gone", 0, access.kubeconfig),
    "names": Outage("DNS away, and connections cut", "30 s", partial(_of_names, 30)),
    "clock-ahead": Outage("clock of the agent an hour ahead", "30 s", partial(_of_clock, _HOUR, 30)),
    "clock-back": Outage("clock of the agent an hour back", "30 s", partial(_of_clock, -_HOUR, 30)),
    "memory": _agent("memory limit of the manifest: six Secrets of 9 MB appear", 0, machine.memory_short),
    "webhook-killed": Outage("one of two webhook servers killed", "-", partial(_of_servers, admission.killed)),
    "webhooks-rolled": Outage("two webhook servers replaced", "-", partial(_of_servers, admission.rolled)),
}
HEAD = "| Outage | Lasted | Works again after | In between |\n|---|---|---|---|"


def play(outage: Outage) -> tuple[bool, str]:
    """Whether it recovered, and its row of the table."""
    with tempfile.TemporaryDirectory(prefix="outage-") as directory:

        async def bounded() -> Outcome:
            async with asyncio.timeout(_LIMIT_SECONDS):
                return await outage.play(Path(directory))

        good = False
        try:
            outcome = asyncio.run(bounded())
            reported = [f"{outcome.recovered:.1f} s", outcome.reported]
            good = True
        except Impossible as error:
            reported, good = ["not tried", str(error)], True
        except NotRecovered as error:
            reported = ["**not at all**", str(error)]
        except (LocalProcessError, KubeError, OSError, AssertionError, TimeoutError, ExceptionGroup) as error:
            reported = ["?", f"the program failed: {error!r}"]
    return good, printable(f"| {' | '.join([outage.what, outage.lasted, *reported])} |")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.outages",
        description="Plays outages on control planes of its own, on loopback, and says when the product works again.",
        epilog=f"outages: {', '.join(OUTAGES)}",
    )
    parser.add_argument("names", nargs="*", metavar="OUTAGE", help="only these; default: all, about half an hour")
    chosen = parser.parse_args(arguments).names or list(OUTAGES)
    if unknown := sorted(set(chosen) - OUTAGES.keys()):
        parser.error(f"not known: {', '.join(unknown)}")
    _end_after(_LIMIT_SECONDS * len(chosen) + 60)
    print(HEAD, flush=True)
    all_good = True
    for name in chosen:
        begin = time.monotonic()
        good, row = play(OUTAGES[name])
        all_good = all_good and good
        print(row, flush=True)
        print(f"({name}: {time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    return 0 if all_good else 1


def _end_after(seconds: float) -> None:
    """Whatever hangs. Clusters notice by themselves."""
    timer = threading.Timer(seconds, os._exit, [2])
    timer.daemon = True
    timer.start()
