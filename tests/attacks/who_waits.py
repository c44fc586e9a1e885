"""A Secret to which 1,000 ManagedResources refer, and that changes continuously: what others wait for, and read.

    python -m tests.attacks.who_waits

The agent is a real process with a control plane of its own. Each of the ManagedResources refers to a Secret that does
not exist, too. Meanwhile a bystander makes, changes and deletes small ManagedResources in another namespace. Their
Secrets all exist, so whenever the status of one reports that a Secret is not found, that is false.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Sequence

from attacks.bystanders import Bystander, namespace
from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource
from kit.processes.agent import AgentProcess, sole_configuration
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.objects import Object, condition, is_deleting

_MANAGED_RESOURCES, _MOST_CHANGES = 1000, 5000
_QUIET_SECONDS, _ATTACKED_SECONDS = 5.0, 30.0
_NAME = "shared"


class Changes(threading.Thread):
    """Changes the Secret without a pause."""

    def __init__(self, place: Place, ends: threading.Event) -> None:
        super().__init__()
        self._place, self._ends = place, ends
        self.count = 0

    def run(self) -> None:
        while self.count < _MOST_CHANGES and not self._ends.is_set():
            with contextlib.suppress(Exception):
                self._place.patch("Secret", _NAME, _bundle(self._place, self.count))
            self.count += 1


class Reader(threading.Thread):
    """Counts false reports about the Secrets of a place."""

    def __init__(self, place: Place, ends: threading.Event) -> None:
        super().__init__()
        self._place, self._ends = place, ends
        self.false: set[str] = set()

    def run(self) -> None:
        while not self._ends.wait(0.2):
            for each in self._place.list("ManagedResource"):
                if not is_deleting(each) and "not found" in _message(each):
                    self.false.add(each["metadata"]["name"])


def _bundle(place: Place, number: int) -> Object:
    return bundle(_NAME, config_map(f"{place.namespace}/c", {"number": str(number)}))


def _message(managed_resource: Object) -> str:
    return str((condition(managed_resource, "ResourcesApplied") or {}).get("message", ""))


def _watched(bystanders: Place, name: str, workers: Sequence[threading.Thread], ends: threading.Event) -> str:
    """Cells of a table: what a bystander waits for, and how often it reads what is false."""
    bystander, reader = Bystander(bystanders, ends, name=name), Reader(bystanders, ends)
    everyone = [bystander, reader, *workers]
    for each in everyone:
        each.start()
    time.sleep(_ATTACKED_SECONDS if workers else _QUIET_SECONDS)
    ends.set()
    for each in everyone:
        each.join()
    return f"{bystander.row()} | {len(reader.false)}"


def main() -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        author, others = namespace(cluster, "author"), namespace(cluster, "others")
        author.create(_bundle(author, 0))
        with AgentProcess(sole_configuration(), kubeconfig=cluster.kubeconfig).start() as agent:
            agent.wait_until_ready()
            print("| | Applied after, s (number) | Repaired after, s (number) | False reports |\n|---|---|---|---|")
            print(f"| before | {_watched(others, 'before', [], threading.Event())} |", flush=True)
            for number in range(_MANAGED_RESOURCES):
                references = [{"name": _NAME}, {"name": f"none{number}"}]
                author.create(managed_resource(f"m{number}", spec={"secretRefs": references}))
            ends = threading.Event()
            changes = Changes(author, ends)
            print(f"| attacked | {_watched(others, 'attacked', [changes], ends)} |", flush=True)
            print(f"\n{changes.count} changes, memory at most {resident_peak_bytes(agent) >> 20} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
