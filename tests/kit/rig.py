"""ManagedResources for tests against an agent that runs as a process: write them, and wait for what comes of them.

Everything is in the test's own namespace and of a resource class of the agent's own, so agents of several test
processes share a cluster without touching each other's objects.
"""

import contextlib
import signal
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from devcluster.cluster import Cluster
from kit.objects import bundle, managed_resource, secret
from kit.processes.agent import AgentProcess, QuickAgentProcess, sole_configuration
from kit.world import Place
from kube.objects import Object, annotations, is_deleting, labels, uid

T = TypeVar("T")

SHORTEST_SYNC_SECONDS = 15
"""That a configuration may have."""
PATIENCE = 300.0
"""Seconds: on a busy machine the garbage collector of Kubernetes, for one, may take as long as this nearly."""

OWN_CLASS = f"c{uuid.uuid4().hex[:8]}"
"""Of the agent that runs as long as this test process."""


class Agent:
    """The agent of a test process, and what it is called in the cluster.

    Args:
        sync_seconds: until the next pass over a ManagedResource that is well, and the time limit of one.
    """

    def __init__(
        self, cluster: Cluster, *, resource_class: str, managed_by: str = "", sync_seconds: int = 15, **sections: Any
    ) -> None:
        self.resource_class = resource_class
        self.managed_by = managed_by or resource_class
        self.user = f"agent-{resource_class}"
        """Who calls, in the audit log."""
        self._cluster = cluster
        self._program = AgentProcess if sync_seconds >= SHORTEST_SYNC_SECONDS else QuickAgentProcess
        self._kubeconfig = cluster.kubeconfig_for(self.user, ["system:masters"])
        controllers = {
            "resourceClass": resource_class,
            "managedResource": {"syncPeriod": f"{sync_seconds}s", "managedByLabelValue": self.managed_by},
            "health": {"syncPeriod": f"{sync_seconds}s"},
            **sections,
        }
        self._config = sole_configuration(controllers=controllers)

    def start(self) -> AgentProcess:
        """To be stopped by its starter."""
        return self._program(self._config, kubeconfig=self._kubeconfig).start().wait_until_ready(seconds=PATIENCE)


class Rig(Place):
    """One test's namespace, seen by its administrator, and the agent that manages what the test writes there."""

    def __init__(self, cluster: Cluster, namespace: str, agent: Agent, process: AgentProcess) -> None:
        super().__init__(cluster, namespace)
        self.agent = agent
        self.process = process

    # --- writing

    def write(self, name: str, *objects: Object, **spec: Any) -> None:
        """A ManagedResource and its Secret, both of this name, that hold these objects and no others."""
        self.write_secret(name, *objects)
        self.write_managed_resource(name, **spec)

    def apply(self, name: str, *objects: Object, **spec: Any) -> None:
        """Writes them and waits until all is applied."""
        self.write(name, *objects, **spec)
        self.until_applied(name)

    def write_secret(self, name: str, *objects: Object) -> None:
        self.put(bundle(name, *map(self.placed, objects)))

    def write_data(self, name: str, data: Mapping[str, bytes]) -> None:
        self.put(secret(name, data))

    def write_managed_resource(
        self, name: str, *, annotated: Mapping[str, str] | None = None, resource_class: str = "", **spec: Any
    ) -> None:
        spec = {"class": resource_class or self.agent.resource_class, **spec}
        self.put(managed_resource(name, annotations=annotated, spec=spec))

    def delete_managed_resource(self, name: str) -> None:
        """Waits until it is gone, and with it, if nothing specifies otherwise, all that it holds."""
        self.delete("ManagedResource", name)
        self.until_gone("ManagedResource", name)

    @contextlib.contextmanager
    def asleep(self) -> Iterator[None]:
        """The agent sees what happens in the block only after it."""
        self.process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.signal(signal.SIGCONT)

    # --- looking

    def uid(self, kind: str, name: str) -> str:
        return uid(self.get(kind, name))

    def origin(self, kind: str, name: str) -> str:
        """The name of the ManagedResource that an object is stamped with; empty if there is none, or no object."""
        stamped = annotations(self.find(kind, name) or {}).get("resources.gardener.cloud/origin", "")
        return stamped.removeprefix(f"{self.namespace}/")

    def applied(self, name: str) -> tuple[str, str, str]:
        """Status, reason and message of the condition ResourcesApplied."""
        found = self.condition(name, "ResourcesApplied")
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    def listed(self, name: str) -> set[str]:
        """Names of all objects that the ManagedResource knows it may have in the target."""
        return {entry["name"] for entry in self.references(name)}

    def references(self, name: str) -> list[Object]:
        """To these objects."""
        status = self.get("ManagedResource", name).get("status") or {}
        return [*(status.get("resources") or []), *(status.get("pendingResources") or [])]

    def events(self, name: str, *, event_type: str = "Warning") -> list[Object]:
        """Events about a ManagedResource."""
        about = {"kind": "ManagedResource", "name": name}
        return [
            event
            for event in self.list("Event")
            if event["type"] == event_type and about.items() <= event["involvedObject"].items()
        ]

    # --- waiting

    def until(self, found: Callable[[], T], what: str, *, seconds: float = PATIENCE) -> T:
        """What `found` returns once it is true."""
        return self.process.wait_for(found, what=what, seconds=seconds, state=self._state)

    def until_applied(self, name: str, *, seconds: float = PATIENCE) -> None:
        """All that the ManagedResource holds by now is applied."""

        def is_applied() -> bool:
            obj = self.get("ManagedResource", name)
            seen = (obj.get("status") or {}).get("observedGeneration") == obj["metadata"]["generation"]
            return seen and self.applied(name)[:2] == ("True", "ApplySucceeded")

        self.until(is_applied, f"{name} to be applied", seconds=seconds)

    def until_failed(self, name: str, *texts: str, reason: str = "ApplyFailed", seconds: float = PATIENCE) -> str:
        """The condition has this reason and names all of this; returns its message."""

        def message() -> str:
            _, reported, message = self.applied(name)
            return message if reported == reason and all(text in message for text in texts) else ""

        return self.until(message, f"{name} to report {reason} with {texts}", seconds=seconds)

    def until_gone(self, kind: str, name: str, *, seconds: float = PATIENCE) -> None:
        self.until(lambda: self.find(kind, name) is None, f"{kind} {name} to be gone", seconds=seconds)

    def until_data(self, name: str, data: Mapping[str, str], *, seconds: float = PATIENCE) -> None:
        self.until(
            lambda: (self.find("ConfigMap", name) or {}).get("data") == data,
            f"ConfigMap {name} to have {data}",
            seconds=seconds,
        )

    def _state(self) -> str:
        reported = []
        for obj in self.list("ManagedResource"):
            name = obj["metadata"]["name"]
            reported.append(f"{name}{' (deleting)' if is_deleting(obj) else ''}: {self.applied(name)}")
        log = [line for line in self.process.log.splitlines() if self.namespace in line][-20:]
        return "\n".join([*reported, "", *log])


def stamped_by(obj: Object) -> str:
    """The value of the managed-by label."""
    return labels(obj).get("resources.gardener.cloud/managed-by", "")


def resident_peak_bytes(agent: AgentProcess) -> int:
    """The most memory that the process has had so far."""
    for line in Path(f"/proc/{agent.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not report")
