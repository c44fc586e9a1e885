"""What the controller manager does with SeedAutoscalers; the set has no controller."""

from typing import Any

from agent.controller_manager.seed_autoscaler.controller import declare
from config.controller_manager.controllers import Controllers, SeedAutoscaler
from devcluster.cluster import Cluster
from gardener.api.garden import MANAGED_SEED_SETS, SEED_AUTOSCALERS
from kit.crash.garden_scene import GardenScene
from kit.crash.sweep import crossing, scenes_of
from kit.garden import Garden
from kit.garden_seed_sets import SeedSetPlace
from kube.objects import condition, integer, spec
from kube.runtime.client import Client

_OF_SEEDS = "seedmanagement.gardener.cloud"


class SeedSetIsScaled(GardenScene):
    """It has fewer replicas than it may have. Then its SeedAutoscaler waits for the controller of the set."""

    crosses = crossing(f"update managedseedsets/scale.{_OF_SEEDS}", f"patch seedautoscalers/status.{_OF_SEEDS}")
    declare = (declare,)
    spare = 2
    """The status reports what was done, and what is waited for, if anybody looks before it has come."""
    settings = Controllers(seed_autoscaler=SeedAutoscaler(enabled=True))

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.place = SeedSetPlace(Garden(cluster), admin)
        self.mark, self.namespace = self.place.name, self.place.base.namespace

    async def prepare(self) -> None:
        self.place.make(1)
        self.place.base.patch(MANAGED_SEED_SETS, self.mark, {"status": {"observedGeneration": 1}}, status=True)
        target = {**MANAGED_SEED_SETS.type_meta, "name": self.mark}
        bounds = {"minReplicas": 2, "maxReplicas": 3}
        self.place.base.create(SEED_AUTOSCALERS, self.mark, spec={"scaleTargetRef": target, **bounds})

    def replicas(self) -> int:
        return integer(spec(self.place.base.get(MANAGED_SEED_SETS, self.mark)).get("replicas"))

    async def problem(self) -> str:
        able = condition(self.place.base.get(SEED_AUTOSCALERS, self.mark), "AbleToScale") or {}
        if self.replicas() == 2 and able.get("reason") == "TargetNotReady":
            return ""
        return f"there are {self.replicas()} replicas, and AbleToScale says {able.get('reason')}"

    async def state(self) -> Any:
        return self.replicas()

    async def clean_up(self) -> None:
        self.place.base.remove()


SCENES = scenes_of(__name__)
