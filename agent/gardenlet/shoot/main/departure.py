"""Departure of a Shoot from its seed: checks in each pass before anything is changed, and its completion."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from agent.gardenlet.common.shoot_states.saving import forget
from agent.gardenlet.shoot.main import bastions
from agent.gardenlet.shoot.main.rules import moving
from agent.gardenlet.shoot.main.tasks import migration
from gardenapi.api import GardenApi
from gardener.api.garden import MANAGED_SEEDS
from gardener.garden.shoots import is_settled, obstacle_to_move
from gardener.network_policies import GARDEN_NAMESPACE
from kube.errors import Forbidden, NotFound
from kube.objects import Key, Object, key
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.presence import present
from process.clusters import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Attributes:
    seed_name: of the own Seed.
    version: of this gardenlet.
    saves_states: whether the controller `shoot-state` regularly saves Shoots of this Seed.
    """

    seed_name: str
    version: str
    seeds: Store[Object]
    seed: Cluster
    garden: Client
    api: GardenApi
    saves_states: bool
    clock: Callable[[], datetime]

    async def problem(self, shoot: Object) -> str:
        """Obstacle to leaving now; empty if there is none."""
        if is_settled(shoot) and (problem := obstacle_to_move(shoot)):
            return problem
        if await bastions.of(self.garden, shoot):
            return bastions.STILL_THERE
        for name in (moving.destination(shoot), self.seed_name):
            seed = await present(self.garden, self.seeds, Key("", name))
            if problem := moving.unavailable(shoot, seed, version=self.version):
                return problem
        return await migration.problem_of_state(self.seed, self.garden, shoot, now=self.clock())

    async def left(self, shoot: Object) -> None:
        """Mark the Shoot as handed over to the destination Seed; the garden may refuse later writes.

        Raises: KubeError.
        """
        await migration.let_go(self.garden, shoot, seed=self.seed_name)
        with suppress(Forbidden, NotFound):
            await self.api.migrated(shoot)

    async def arrived(self, shoot: Object) -> None:
        """Delete the state that the Shoot has brought along, unless it is saved regularly anyway."""
        managed = await self.garden.find(MANAGED_SEEDS, Key(GARDEN_NAMESPACE, self.seed_name))
        if not self.saves_states or managed is not None:
            await forget(self.garden, key(shoot))
