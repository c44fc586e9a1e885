"""Secrets of some hundred bytes that unfold to what fills memory and holds up the agent.

    python -m tests.attacks.decoding                      # this checkout
    python -m tests.attacks.decoding --project DIRECTORY  # the agent of another one

For each sort of Secret: six ManagedResources that name such ones are there when an agent starts, and so is one that is
innocent. The agent gets the memory that the manifest allows, and is killed when it takes more, as a kernel would do;
whenever it ends it is started again, as a kubelet would do. Everything is on a control plane on loopback of this
program's own, and ends after a minute for each sort.
"""

import argparse
import base64
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import brotli
import yaml

from devcluster.cluster import Cluster
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj
from kit.processes.agent import PROJECT, AgentProcess, configuration
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.resources import SECRETS

_MIB = 2**20
_ATTACKERS = 6
_SECONDS = 60.0
_BREATH = 10.0
"""Seconds after the innocent one was applied in which the agent is still watched."""
_UNIT = {"Mi": _MIB, "Gi": 1024 * _MIB}


def memory_limit() -> int:
    """Bytes, as the manifest states."""
    documents = yaml.safe_load_all((PROJECT / "manifests/base/agent/agent.yaml").read_text())
    [deployment] = [document for document in documents if document["kind"] == "Deployment"]
    [agent] = deployment["spec"]["template"]["spec"]["containers"]
    text = agent["resources"]["limits"]["memory"]
    return int(text[:-2]) * _UNIT[text[-2:]]


# --- the Secrets


def strings() -> Iterator[bytes]:
    """Objects with a string of 60 MiB."""
    for name in "ab":
        yield _config_map(name, b'"' + b"a" * (60 * _MIB) + b'"')


def acceptable() -> Iterator[bytes]:
    """Objects that an API server might accept, nearly as many as may be."""
    for number in range(10):
        yield _config_map(f"c{number}", b'"' + b"a" * (29 * _MIB // 10) + b'"')


def lists() -> Iterator[bytes]:
    """Lists of millions."""
    for name in "ab":
        yield _config_map(name, b"[" + b"[]," * (10 * _MIB) + b"[]]")


def anchors() -> Iterator[bytes]:
    """A string that is read once, and written ten thousand times."""
    for name in "ab":
        text = b"data: {x: &x '" + b"a" * 60_000 + b"'}\nmore: [" + b"*x," * 10_000 + b"]\n"
        yield b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name.encode() + b"}\n" + text


SORTS: dict[str, Callable[[], Iterator[bytes]]] = {
    "two strings of 60 MiB": strings,
    "ten objects of 2.9 MiB": acceptable,
    "two lists of 10 million": lists,
    "600 MB by anchors, twice": anchors,
}


def _config_map(name: str, value: bytes) -> bytes:
    meta = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"' + name.encode() + b'"},"data":{"k":'
    return meta + value + b"}}"


@cache
def secret_data(sort: str) -> dict[str, str]:
    packed = {f"{number}.br": brotli.compress(text, quality=5) for number, text in enumerate(SORTS[sort]())}
    return {name: base64.b64encode(content).decode() for name, content in packed.items()}


# --- one attack


@dataclass(slots=True)
class Outcome:
    secret_bytes: int
    peak: int = 0
    slowest: float = 0.0
    """Seconds until /healthz answered."""
    applied_after: float | None = None
    restarts: int = 0

    def row(self, sort: str) -> str:
        applied = f"{self.applied_after:.1f} s" if self.applied_after is not None else f"not in {_SECONDS:.0f} s"
        return (
            f"| {sort} | {self.secret_bytes} | {self.peak / _MIB:.0f} MiB | {self.slowest:.2f} s | {applied} | "
            f"{self.restarts} |"
        )


HEADER = """\
| Six Secrets with | bytes each | peak of memory | slowest /healthz | innocent one applied after | restarts |
|---|---|---|---|---|---|"""


def attack(cluster: Cluster, sort: str, *, number: int, project: Path) -> Outcome:
    namespace = f"attack-{number}"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    place, data = Place(cluster, namespace), secret_data(sort)
    for attacker in range(_ATTACKERS):
        place.create(obj(SECRETS, f"attacker-{attacker}", data=data))
        place.create(managed_resource(f"attacker-{attacker}"))
    place.create(bundle("innocent", config_map(f"{namespace}/harmless")))
    place.create(managed_resource("innocent"))
    outcome = Outcome(sum(len(base64.b64decode(value)) for value in data.values()))
    with _Kubelet(cluster, namespace, outcome, project=project):
        began = time.monotonic()
        until = began + _SECONDS
        while time.monotonic() < until:
            if outcome.applied_after is None and place.statuses("innocent")[0] == "True":
                outcome.applied_after = time.monotonic() - began
                until = min(until, time.monotonic() + _BREATH)
            time.sleep(0.05)
    return outcome


class _Kubelet:
    """Runs an agent while the context lasts, and watches it in threads."""

    def __init__(self, cluster: Cluster, namespace: str, outcome: Outcome, *, project: Path) -> None:
        config = configuration(namespace)
        for default in ("leaseDuration", "renewDeadline", "retryPeriod"):
            del config["leaderElection"][default]
        self._config = config
        self._cluster = cluster
        self._environment = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(project)}
        self._limit = memory_limit()
        self._outcome = outcome
        self._ends = threading.Event()
        self._agent = self._start()
        self._threads = [threading.Thread(target=self._watch), threading.Thread(target=self._probe)]

    def _start(self) -> AgentProcess:
        agent = AgentProcess(self._config, kubeconfig=self._cluster.kubeconfig, environment=self._environment)
        return agent.start()

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()
        self._agent.kill()

    def _watch(self) -> None:
        while not self._ends.wait(0.02):
            agent = self._agent
            if agent.process.poll() is None:
                try:
                    self._outcome.peak = max(self._outcome.peak, resident_peak_bytes(agent))
                    too_much = agent.resident_bytes > self._limit
                except (OSError, AssertionError):
                    continue  # it just ended
                if too_much:
                    agent.kill()
            else:
                self._outcome.restarts += 1
                self._agent = self._start()

    def _probe(self) -> None:
        """One after the other: what is queried while nothing is answered counts from then on."""
        while not self._ends.wait(0.05):
            agent = self._agent
            began = time.monotonic()
            status, _ = agent.probe("/healthz")
            if status:
                self._outcome.slowest = max(self._outcome.slowest, time.monotonic() - began)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks.decoding", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--project", type=Path, default=PROJECT, help="the checkout whose agent is attacked")
    options = parser.parse_args(arguments)
    with Cluster() as cluster:
        install_crd(cluster)
        print(HEADER, flush=True)
        for number, sort in enumerate(SORTS):
            print(attack(cluster, sort, number=number, project=options.project).row(sort), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
