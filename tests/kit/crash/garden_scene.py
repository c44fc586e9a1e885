"""What the controller manager does, as scenes of `kit.crash.sweep`, with the rights that the manifests give it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from config.controller_manager.controllers import Controllers
from devcluster.cluster import Cluster
from kit.crash.sweep import Scene
from kit.garden import Garden
from kit.garden_controllers import Declare, run_garden_controllers
from kit.garden_shoots import ShootPlace
from kit.processes.agent import AgentProcess
from kube.clock import utc_now
from kube.runtime.client import Client

_HEAD = {
    "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1",
    "kind": "ControllerManagerConfiguration",
}


class GardenScene(Scene):
    declare: ClassVar[Sequence[Declare]]
    """The controllers."""
    settings: ClassVar[Controllers] = Controllers()
    everywhere = True

    def now(self) -> datetime:
        return utc_now()

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        namespaces = () if self.everywhere else (self.namespace,)
        running = run_garden_controllers(self.declare, client, *namespaces, controllers=self.settings, clock=self.now)
        async with running as loops:
            for loop in loops:
                loop.queue._max_backoff = min(loop.queue._max_backoff, self.longest_back_off)
            yield lambda: all(loop.queue.is_idle for loop in loops)

    def process(self, kubeconfig: Path) -> AgentProcess:
        """With all controllers, with their default settings."""
        return AgentProcess({**_HEAD, "leaderElection": {"leaderElect": False}}, kubeconfig=kubeconfig)


class PlaceScene(GardenScene):
    """In a Project with all that Shoots need."""

    everywhere = False
    is_in_garden: ClassVar[bool] = False
    """Whether that is the Project `garden`, whose Shoots may run Seeds."""

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.place = ShootPlace(Garden(cluster), is_garden=self.is_in_garden)
        self.mark, self.namespace = self.place.name, self.place.namespace

    async def prepare(self) -> None:
        pass

    async def clean_up(self) -> None:
        self.place.remove()
