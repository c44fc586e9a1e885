"""One object that parsers refuse, among other ManagedResources.

    python -m tests.attacks.unreadable                      # this checkout
    python -m tests.attacks.unreadable --project DIRECTORY  # the agent of another one

For each sort of object: it comes while an agent is at work, others come after it, and it goes. Then
an agent starts with it there. Everything is on a control plane on loopback of this program's own.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devcluster.cluster import Cluster
from kit.deep import deep_secret, nested
from kit.kinds import custom_resource, serve
from kit.managed_resources import install_crd
from kit.objects import bundle, config_map, managed_resource, obj
from kit.processes.agent import PROJECT, AgentProcess, sole_configuration
from kit.rig import resident_peak_bytes
from kit.world import Place
from kube.resources import SECRETS, Resource

_MIB = 2**20
_OTHERS = 20
_SECONDS = 30.0
_WIDGETS = custom_resource("deep.example.com", "Widget")


@dataclass(frozen=True, slots=True)
class Sort:
    resource: Resource
    body: bytes
    """What is created, or patched into an object that is managed."""
    is_patch: bool = False


SORTS = {
    "managed fields of 1,100 levels": Sort(SECRETS, deep_secret("bad")),
    "managed fields of 9,000 levels": Sort(SECRETS, deep_secret("bad", levels=9_000)),
    "a managed object of 300 levels": Sort(_WIDGETS, b'{"spec":{"size":2,"deep":' + nested(300) + b"}}", True),
    "a managed object of 1,500 levels": Sort(_WIDGETS, b'{"spec":{"size":2,"deep":' + nested(1_500) + b"}}", True),
    "a managed object with 400,000 brackets": Sort(
        _WIDGETS,
        b'{"spec":{"size":2,"deep":' + nested(1_500) + b',"wide":[' + b"[[]]," * 100_000 + b"[]]}}",
        True,
    ),
}


@dataclass(slots=True)
class Outcome:
    applied_after: float | None = None
    """Seconds until all others were applied, after they came."""
    restarted_after: float | None = None
    """The same with an agent that starts."""
    repaired_after: float | None = None
    is_managed: bool = False
    peak: int = 0
    cpu: float = 0.0
    readyz: int = 0

    def row(self, sort: str) -> str:
        times = [self.applied_after, self.restarted_after, *([self.repaired_after] if self.is_managed else [])]
        shown = [f"not in {_SECONDS:.0f} s" if each is None else f"{each:.1f} s" for each in times]
        return f"| {sort} | {' | '.join([*shown, ''][:3])} | {self.peak / _MIB:.0f} MiB | {self.cpu:.1f} s | {self.readyz} |"


HEADER = f"""\
| An object with | {_OTHERS} others applied after | with a new agent | repaired after | memory | CPU | /readyz |
|---|---|---|---|---|---|---|"""


def attack(cluster: Cluster, sort: Sort, *, number: int, project: Path) -> Outcome:
    namespace, outcome = f"attack-{number}", Outcome(is_managed=sort.is_patch)
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    place = Place(cluster, namespace)
    path = sort.resource.path(namespace=namespace)
    with _agent(cluster, namespace, outcome, project=project):
        if sort.is_patch:
            _write(place, "bad", obj(_WIDGETS, "bad", namespace=namespace, spec={"size": 1}))
            _seconds_until(lambda: place.statuses("bad")[0] == "True")
        _send(cluster, path, sort)
        outcome.applied_after = _others(place, "first")
        if sort.is_patch:
            outcome.repaired_after = _seconds_until(
                lambda: b'"spec":{"size":1}' in cluster.api.raw("GET", f"{path}/bad")[1]
            )
    with _agent(cluster, namespace, outcome, project=project):
        outcome.restarted_after = _others(place, "second")
    return outcome


@contextmanager
def _agent(cluster: Cluster, namespace: str, outcome: Outcome, *, project: Path) -> Iterator[None]:
    environment = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(project)}
    config = sole_configuration(controllers={"resourceClass": namespace})
    agent = AgentProcess(
        config, kubeconfig=cluster.kubeconfig, target_kubeconfig=cluster.kubeconfig, environment=environment
    )
    with agent.start():
        _seconds_until(lambda: agent.probe("/readyz")[0] == 200)
        yield
        outcome.readyz = agent.probe("/readyz")[0]
        outcome.peak = max(outcome.peak, resident_peak_bytes(agent))
        outcome.cpu += agent.metric("process_cpu_seconds_total") or 0.0


def _send(cluster: Cluster, path: str, sort: Sort) -> None:
    """As it stands: Python's own encoder does not go so deep."""
    if sort.is_patch:
        kind = "application/merge-patch+json"
        status, answer = cluster.api.raw("PATCH", f"{path}/bad", sort.body, content_type=kind)
    else:
        status, answer = cluster.api.raw("POST", path, sort.body)
    if status >= 300:
        raise RuntimeError(f"the API server does not take it: {answer[:300]!r}")


def _write(place: Place, name: str, *objects: dict[str, object]) -> None:
    place.create(bundle(name, *objects))
    place.create(managed_resource(name, spec={"class": place.namespace}))


def _others(place: Place, prefix: str) -> float | None:
    names = [f"{prefix}-{number}" for number in range(_OTHERS)]
    for name in names:
        _write(place, name, config_map(f"{place.namespace}/{name}"))

    def are_applied() -> bool:
        while names and place.statuses(names[-1])[0] == "True":
            names.pop()
        return not names

    return _seconds_until(are_applied)


def _seconds_until(found: Callable[[], bool]) -> float | None:
    began = time.monotonic()
    while time.monotonic() < began + _SECONDS:
        if found():
            return time.monotonic() - began
        time.sleep(0.05)
    return None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attacks.unreadable", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--project", type=Path, default=PROJECT, help="the checkout whose agent is attacked")
    options = parser.parse_args(arguments)
    with Cluster() as cluster:
        install_crd(cluster)
        serve(cluster, _WIDGETS)
        print(HEADER, flush=True)
        for number, (name, sort) in enumerate(SORTS.items()):
            print(attack(cluster, sort, number=number, project=options.project).row(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
