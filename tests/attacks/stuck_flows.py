"""Shoots whose extension never answers, in a real gardenlet: how long the Shoot of another Project takes.

    python -m tests.attacks.stuck_flows

Garden and seed are control planes, the controllers those of the gardenlet, with eight workers for Shoots; what runs of a
Shoot is simulated, see `kit.gardenlet_shoots`. First a Shoot is created alone. Then one Project has twelve Shoots that never
finish, and two others have two each, one Project after the other, until no worker is left and all only wait. Another
Project has its first Shoot then.
"""

import asyncio
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

from agent.gardenlet.extensions.backup_entry.controller import declare as backup_entries
from agent.gardenlet.shoot.care.controller import declare as care
from agent.gardenlet.shoot.main.controller import declare as shoots
from config.gardenlet.controllers import Controllers
from config.gardenlet.controllers import Shoot as Settings
from devcluster.cluster import Cluster
from gardener.garden.shoots import last_operation
from kit.eventually import soon
from kit.garden import Garden, installed
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context, local_fields
from kit.gardenlet_shoots import SHAPE, ShootsPlace, hurry, played_provider
from kit.world import connected
from kube.runtime.client import Client
from kube.runtime.loop import ControlLoop

_STUCK = {"extensions": [{"type": "local", "providerConfig": {"simulate": {"stuck": True}}}]}
_WORKERS, _STUCK_SHOOTS, _HELD = 8, (12, 2, 2), (6, 7, 8)
"""_STUCK_SHOOTS and _HELD: of each Project, and how many workers are held then."""
_PATIENCE_SECONDS, _SETTLE_SECONDS = 300.0, 10.0


def _resident() -> int:
    """KiB of this process, which is gardenlet and provider."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


async def _created(place: ShootsPlace, name: str, seed_name: str) -> float:
    """Seconds until a Shoot has succeeded."""
    began = time.monotonic()
    place.shoot(name, seedName=seed_name)
    await soon(
        lambda: asyncio.to_thread(lambda: last_operation(place.get(name)).get("state") == "Succeeded"),
        "the Shoot to succeed",
        seconds=_PATIENCE_SECONDS,
        state=lambda: place.get(name).get("status"),
    )
    return time.monotonic() - began


async def _has_begun(place: ShootsPlace, name: str) -> bool:
    return bool(await asyncio.to_thread(lambda: last_operation(place.find(name) or {})))


def _only_wait(loop: ControlLoop, least: int) -> bool:
    """At least `least` passes are in work, and all wait."""
    passes = loop.controller._passes.values()
    return len(passes) >= least and all(each._waits for each in passes)


async def _take_workers(places: list[ShootsPlace], seed_name: str, loop: ControlLoop) -> None:
    for place, number, held in zip(places, _STUCK_SHOOTS, _HELD, strict=True):
        for each in range(number):
            place.shoot(f"stuck-{each:02}", seedName=seed_name, **_STUCK)
        await soon(partial(_only_wait, loop, held), "its Shoots to wait", seconds=_PATIENCE_SECONDS)
    await asyncio.sleep(_SETTLE_SECONDS)
    print(f"| workers that hold Shoots which never finish | {len(loop.queue._running)} of {_WORKERS} |", flush=True)


async def _measure(garden: Garden, seed: Cluster, directory: Path) -> None:
    hurry(pytest.MonkeyPatch(), seed)
    places = [ShootsPlace(garden, seed) for _ in range(len(_HELD) + 2)]
    name = places[0].name
    config = gardenlet_config(
        name,
        controllers=Controllers(shoot=Settings(concurrent_syncs=_WORKERS)),
        **local_fields(),
    )
    async with (
        played_provider(places, directory, token=seed.token),
        connected(garden.gardenlet_kubeconfig(name), "gardenlet/garden", client=Client) as to_garden,
        connected(seed, "gardenlet/seed", client=Client) as to_seed,
    ):
        context = await gardenlet_context(garden=to_garden, seed=to_seed, config=config)
        async with gardenlet_at_work(context, shoots, backup_entries, care) as (loop, *_):
            alone = await _created(places[-2], "alone", name)
            before = _resident()
            await _take_workers(places[: len(_HELD)], name, loop)
            other = places[-1]
            began = time.monotonic()
            creating = asyncio.create_task(_created(other, "other", name))
            await soon(lambda: _has_begun(other, "other"), "it to begin", seconds=_PATIENCE_SECONDS)
            waited = time.monotonic() - began
            took = await creating
            grown = (_resident() - before) >> 10
            print(f"| Shoot of another Project, alone | {alone:.1f} s |")
            print(f"| beside those: begun after | {waited:.1f} s |")
            print(f"| beside those: succeeded after | {took:.1f} s |")
            print(f"| memory more | {grown} MiB |", flush=True)


def main() -> int:
    with (
        Cluster() as cluster,
        Cluster(shape=SHAPE) as seed,
        tempfile.TemporaryDirectory(prefix="stuck-flows-") as directory,
    ):
        asyncio.run(_measure(installed(cluster), seed, Path(directory)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
