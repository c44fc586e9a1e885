"""Thousands of Events in a Shoot: what its gardenlet, its resource manager, the tools and its deletion take then.

    python -m devcluster up --garden --seed meadow --shoots --name attacked
    python -m tests.attacks.shoot_events attacked [number]
    python -m devcluster down --name attacked

Two Shoots are created on the running devcluster, and one of them gets the Events, by 32 requests at a time for at most
four minutes. Then both are looked at, reconciled and deleted, one after the other.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from attacks.running_shoots import RunningGarden
from kube.errors import KubeError
from kube.objects import Object
from kube.resources import EVENTS
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

_NAMES = ("quiet", "eventful")
_AT_ONCE, _LONGEST_SECONDS, _PATIENCE_SECONDS = 32, 240.0, 300.0
_TEXT = "x" * 500


def _event(number: int) -> Object:
    namespace = "kube-system" if number % 2 else "default"
    return {
        "metadata": {"name": f"event-{number}", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": f"pod-{number % 100}"},
        "type": "Warning",
        "reason": "Attacked",
        "message": f"{number} {_TEXT}",
    }


async def _fill(kubeconfig: Path, number: int) -> int:
    """How many Events have been created in time."""
    numbers, made = iter(range(number)), 0
    until = time.monotonic() + _LONGEST_SECONDS

    async def work(client: Client) -> None:
        nonlocal made
        for each in numbers:
            if time.monotonic() > until:
                return
            try:
                await client.create(EVENTS, _event(each))
            except KubeError as error:
                print(f"an Event was refused: {error}", file=sys.stderr)
                return
            made += 1

    async with Transport(load_kubeconfig(kubeconfig)) as transport:
        client = Client(transport, user_agent="attack")
        await asyncio.gather(*(work(client) for _ in range(_AT_ONCE)))
    return made


def _peaks(garden: RunningGarden) -> dict[str, int]:
    """MiB of the most that programs have had: of the seed, and the resource managers of Shoots."""
    found = {}
    for name, state in garden.seed.component_states().items():
        if name in ("gardenlet", "local-provider"):
            found[name] = _peak(state["pid"])
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        arguments = each.read_bytes().decode(errors="replace")
        for name in _NAMES:
            if f"--{name}/gardener-resource-manager" in arguments and str(garden.seed.state) in arguments:
                found[f"resource manager of {name}"] = _peak(int(each.parent.name))
    return found


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


def _seconds(action: Callable[..., object], *arguments: str) -> str:
    began = time.monotonic()
    action(*arguments)
    return f"{time.monotonic() - began:.1f} s"


def _row(what: str, *found: object) -> None:
    print(f"| {what} | {' | '.join(map(str, found))} |", flush=True)


def main(cluster: str, number: int) -> int:
    garden = RunningGarden(cluster)
    for name in _NAMES:
        garden.create(name)
    before = _peaks(garden)
    with tempfile.TemporaryDirectory(prefix="shoot-events-") as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_bytes(garden.kubectl("gardener", "kubeconfig", _NAMES[1], "--admin"))
        began = time.monotonic()
        made = asyncio.run(_fill(kubeconfig, number))
    print(f"{made} Events in {time.monotonic() - began:.0f} s")
    _row("", *_NAMES)
    _row("`kubectl gardener why`", *(_seconds(garden.kubectl, "gardener", "why", "shoot", each) for each in _NAMES))
    _row("reconciled after", *(_seconds(garden.reconcile, each) for each in _NAMES))
    _row("memory before, MiB", before)
    _row("memory after, MiB", _peaks(garden))
    _row("deleted after", *(_seconds(garden.delete, each) for each in _NAMES))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 100_000))
