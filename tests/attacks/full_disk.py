"""A full disk while a Shoot is created, and while it runs; as root, since a file system of its own is mounted.

    python -m devcluster up --garden --seed meadow --shoots --name attacked
    python -m tests.attacks.full_disk attacked
    python -m devcluster down --name attacked

What the local provider has of Shoots is on a tmpfs of 16 KiB, then of 20 MiB, which is too small for an etcd, and then of
1.5 GiB: the Shoot has to be created by itself. Then the disk is filled by others until etcd ends; it has to come back by
itself, with all that it had.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attacks.running_shoots import RunningGarden
from gardener.api.druid import ETCDS
from kit.eventually import eventually
from kube.objects import Object, condition, mapping
from kube.resources import EVENTS

_NAME, _NAMESPACE = "cramped", "shoot--dev--cramped"
_TINY, _SMALL, _ENOUGH = "16k", "20m", "1500m"
_PATIENCE_SECONDS = 240.0
_FULL = os.strerror(28)


@contextmanager
def _disk(place: Path) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(("mount", "-t", "tmpfs", "-o", f"size={_TINY}", "full-disk", str(place)), check=True)
    try:
        yield
    finally:
        subprocess.run(("umount", "--lazy", str(place)), check=True)


def _resize(place: Path, size: str) -> None:
    subprocess.run(("mount", "-o", f"remount,size={size}", str(place)), check=True)


def _etcd(garden: RunningGarden) -> Object:
    found: Object = garden.seed.api.get(ETCDS.path(namespace=_NAMESPACE, name="etcd-main"))
    return found


def _reported(garden: RunningGarden) -> str:
    return str((condition(_etcd(garden), "Ready") or {}).get("message") or "")


def _until_it_says(garden: RunningGarden, what: str) -> None:
    def says() -> bool:
        return _FULL.lower() in _reported(garden).lower()

    eventually(says, f"the Etcd to name the disk: {what}", seconds=_PATIENCE_SECONDS, state=lambda: _reported(garden))
    print(f"| {what} | {_reported(garden)[:300]} |", flush=True)


def _is_ready(garden: RunningGarden) -> bool:
    return mapping(_etcd(garden).get("status")).get("ready") is True


def _fill(others: Path) -> None:
    with others.open("wb", buffering=0) as file:
        block = b"\0" * (1 << 20)
        try:
            while file.write(block):
                pass
        except OSError:
            return


def main(cluster: str) -> int:
    garden = RunningGarden(cluster)
    place = garden.seed.state / "provider" / "shoots"
    assert not place.exists() or not any(place.iterdir()), "use a devcluster without Shoots"
    with _disk(place):
        garden.ask(_NAME)
        eventually(lambda: _exists(garden), "the Etcd", seconds=_PATIENCE_SECONDS)
        _until_it_says(garden, f"a disk of {_TINY}")
        _resize(place, _SMALL)
        time.sleep(2.0)
        _until_it_says(garden, f"a disk of {_SMALL}")
        _resize(place, _ENOUGH)
        began = time.monotonic()
        garden.until_created(_NAME)
        print(f"| created, once there is space, after | {time.monotonic() - began:.0f} s |", flush=True)
        before = _snapshots_used(garden)
        _fill(place / "others")
        _until_it_says(garden, "the disk is filled while it runs")
        (place / "others").unlink()
        began = time.monotonic()
        eventually(lambda: _is_ready(garden), "it to be back", seconds=_PATIENCE_SECONDS)
        print(f"| back, once there is space, after | {time.monotonic() - began:.0f} s |")
        print(f"| made from older snapshots | {_snapshots_used(garden) - before} times |", flush=True)
        garden.delete(_NAME)
    return 0


def _exists(garden: RunningGarden) -> bool:
    path = ETCDS.path(namespace=_NAMESPACE)
    return bool(garden.seed.api.get(path)["items"])


def _snapshots_used(garden: RunningGarden) -> int:
    events = garden.seed.api.get(EVENTS.path(namespace=_NAMESPACE))["items"]
    return sum(each["reason"] in ("Restored", "DataLost") for each in events)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
