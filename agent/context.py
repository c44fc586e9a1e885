"""What a control loop gets and what it is: the seam between the process and the controllers."""

from dataclasses import dataclass, field
from typing import Protocol

from agent.changes import RecentChanges
from config.schema import ResourceManagerConfiguration
from kube.controller import Controller
from kube.events import EventRecorder
from process.clusters import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What control loops are made from."""

    config: ResourceManagerConfiguration
    source: Cluster
    target: Cluster
    recorder: EventRecorder
    """Writes events into the source cluster."""
    target_recorder: EventRecorder
    """Writes events into the target cluster; the same one if the clusters are one."""
    cluster_id: str
    """Identity of the source cluster, part of the origin of objects; empty: none."""
    changes: RecentChanges = field(default_factory=lambda: RecentChanges(limit=0))
    """What is done to objects is noted here, for the status page."""


class ControlLoop(Protocol):
    """A controller and the watches that feed its queue; made only where this process leads."""

    @property
    def controller(self) -> Controller: ...

    async def start(self) -> None:
        """Acquire stores, wait until they are synced, and subscribe; the controller's workers start after that."""

    def kinds_changed(self, group: str) -> None:
        """CustomResourceDefinitions of this group came, changed or went in the target cluster."""

    async def close(self) -> None:
        """Give the stores back; the workers have ended. Also called if `start` failed or was cancelled."""
