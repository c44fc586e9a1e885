"""Large graphs of dependencies, and large annotations: what others wait for, and what it costs.

    python -m tests.attacks.dependencies

The agent is a real process with a control plane of its own: ManagedResources in a chain, each of which names the next
50 in an annotation, first as they are and then with 250,000 characters of entries that name nothing.
"""

import sys
import threading
import time
from pathlib import Path

from devcluster.cluster import Cluster
from gardener import keys
from kit.eventually import eventually
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource
from kit.processes.agent import AgentProcess, configuration
from kit.world import Place

_NAMESPACE, _OTHER = "dependencies", "others"
_WIDTH = 50
_SORTS = {"1,000 in a chain": (1000, 0), "100 with 250 kB each": (100, 125_000)}
_AFTER_SECONDS = 15.0
_PATIENCE_SECONDS = 120.0


class Probes:
    """The longest time that `/healthz` took, until it is stopped."""

    def __init__(self, agent: AgentProcess) -> None:
        self.slowest = 0.0
        self._agent = agent
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        while not self._done.wait(0.05):
            began = time.monotonic()
            self._agent.probe("/healthz")
            self.slowest = max(self.slowest, time.monotonic() - began)

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self.slowest


def _chain(place: Place, prefix: str, count: int, empty_entries: int) -> None:
    for number in range(count):
        named = ",".join(f"{prefix}-{each}" for each in range(number + 1, min(number + 1 + _WIDTH, count)))
        place.create(
            managed_resource(
                f"{prefix}-{number}",
                annotations={keys.DEPENDS_ON: named + ",x" * empty_entries},
                spec={"secretRefs": [{"name": "empty"}]},
            )
        )


def _cpu_seconds(agent: AgentProcess) -> float:
    fields = Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _innocent(place: Place, name: str) -> float:
    place.create(bundle(name, config_map(f"{_OTHER}/{name}")))
    began = time.monotonic()
    place.create(managed_resource(name))
    eventually(lambda: place.statuses(name)[0] == "True", f"{name} to be applied", seconds=_PATIENCE_SECONDS)
    return time.monotonic() - began


def main() -> int:
    with Cluster() as cluster:
        install_crd(cluster)
        for namespace in (_NAMESPACE, _OTHER):
            cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        place, others = Place(cluster, _NAMESPACE), Place(cluster, _OTHER)
        place.create(bundle("empty"))
        namespaces = {"namespaces": [_NAMESPACE, _OTHER]}
        agent_configuration = configuration(
            _NAMESPACE, sourceClientConnection=namespaces, targetClientConnection=namespaces
        )
        print(
            "| ManagedResources | Another one applied after, s | Slowest `/healthz`, s | CPU, s | Memory, MiB |\n"
            "|---|---|---|---|---|",
            flush=True,
        )
        with AgentProcess(agent_configuration, kubeconfig=cluster.kubeconfig).start() as agent:
            agent.wait_until_leading()
            for position, (what, (count, empty_entries)) in enumerate(_SORTS.items()):
                before, probes = _cpu_seconds(agent), Probes(agent)
                _chain(place, f"mr{position}", count, empty_entries)
                waited = _innocent(others, f"innocent{position}")
                time.sleep(_AFTER_SECONDS)
                slowest, cpu = probes.stop(), _cpu_seconds(agent) - before
                memory = agent.resident_bytes >> 20
                print(f"| {what} | {waited:.1f} | {slowest:.1f} | {cpu:.1f} | {memory} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
