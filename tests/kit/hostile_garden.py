"""Hostile objects of all kinds in a Project, and the programs of a garden beside them, with their memory.

with GardenPrograms(garden) as programs:
make_hostile(place)
programs.peaks()    # MiB, by program
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from devcluster.garden.box import WEBHOOKS
from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES
from kit.garden import Garden
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.processes.agent import AgentProcess
from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS

_MIB = 2**20


def _program(kind: str, group: str, **sections: Any) -> Object:
    election = {"leaderElect": False, "resourceNamespace": "garden"}
    head = {"apiVersion": f"{group}.config.gardener.cloud/v1alpha1", "kind": f"{kind}Configuration"}
    return {**head, "leaderElection": election, "logFormat": "json", **sections}


CONFIGURATIONS = {
    # Seeds count as ready, although no gardenlet states so.
    "controller manager": _program(
        "ControllerManager", "controllermanager", controllers={"seed": {"monitorPeriod": "10h"}}
    ),
    "scheduler": _program("Scheduler", "scheduler"),
}


class GardenPrograms:
    """The controller manager and the scheduler as processes, and the garden's admission server, which runs already."""

    def __init__(self, garden: Garden) -> None:
        kubeconfig = garden.cluster.kubeconfig
        self.agents = {name: AgentProcess(each, kubeconfig=kubeconfig) for name, each in CONFIGURATIONS.items()}
        self._admission = garden.cluster.component_states()[WEBHOOKS]["pid"]
        self._running = ExitStack()

    def __enter__(self) -> Self:
        for agent in self.agents.values():
            self._running.enter_context(agent.start())
        for agent in self.agents.values():
            agent.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()

    def peaks(self) -> dict[str, int]:
        """The most memory that each has had so far, in MiB."""
        pids = {name: agent.pid for name, agent in self.agents.items()} | {"admission": self._admission}
        return {name: _peak(pid) // _MIB for name, pid in pids.items()}


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [found] = [line for line in lines if line.startswith("VmHWM:")]
    return int(found.split()[1]) * 1024


def make_hostile(place: ShootPlace, *, each: int) -> None:
    """Of each sort so many."""
    _make_parent(place)
    parent = {"kind": "CloudProfile", "name": _parent(place)}
    labels = {f"k{number}": "" for number in range(20_000)}
    finalizers = [f"a.b/{number}" for number in range(20_000)]
    annotations = {f"a{number}": "" for number in range(10_000)}
    for number in range(each):
        name = f"hostile{number}"
        place.create(CONFIG_MAPS, name, metadata={"labels": labels})
        place.create(SECRETS, name, metadata={"labels": labels, "annotations": annotations})
        place.create(SECRETS, f"{name}-f", metadata={"finalizers": finalizers})
        place.create(SERVICE_ACCOUNTS, name, metadata={"labels": labels})
        meta: Object = {"annotations": annotations, "labels": {f"k{label}": "" for label in range(5_000)}}
        place.shoot(name, metadata=meta)
        for child in range(5):
            place.create(NAMESPACED_CLOUD_PROFILES, f"{name}-{child}", spec={"parent": parent})


def remove_hostile(place: ShootPlace, *, each: int) -> None:
    """Finalizers go, and so does what no one else removes."""
    for number in range(each):
        place.patch(SECRETS, f"hostile{number}-f", {"metadata": {"finalizers": None}})
        for resource in (CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS):
            place.delete(resource, f"hostile{number}")


def _parent(place: ShootPlace) -> str:
    return f"{place.name}-large"


def _make_parent(place: ShootPlace) -> None:
    """A CloudProfile of 180 kB, which is not hostile."""
    spec = garden_object(CLOUD_PROFILES)["spec"]
    details = {"architectures": ["amd64"], "classification": "deprecated", "cri": [{"name": "containerd"}]}
    versions = [{"version": f"1.{number // 100}.{number % 100}", **details} for number in range(900)]
    spec |= {"type": place.name, "machineImages": [{"name": place.name, "versions": versions}]}
    machine = {"cpu": "2", "gpu": "0", "memory": "4Gi", "architecture": "amd64"}
    spec["machineTypes"] = [*spec["machineTypes"], *({"name": f"t{number}", **machine} for number in range(900))]
    place.create(CLOUD_PROFILES, _parent(place), spec=spec)
