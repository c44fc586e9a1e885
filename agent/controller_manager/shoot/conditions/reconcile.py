"""One pass over a Shoot: its conditions, and those of the Seed that runs on it."""

from dataclasses import dataclass

from agent.controller_manager.common.api import BY_SHOOT
from agent.controller_manager.shoot.conditions.rules import merged
from gardener.garden.resources import SHOOTS
from kube.cache import Store
from kube.client import Client
from kube.controller import Done, ReconcileError, Result
from kube.errors import NotFound
from kube.objects import Key, Object, mappings, metadata
from kube.paths import at


def conditions(obj: Object) -> list[Object]:
    return mappings(at(obj, "status", "conditions"))


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    shoots: Store[Object]
    managed_seeds: Store[Object]
    seeds: Store[Object]

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None:
            return Done()
        present = conditions(shoot)
        wanted = merged(present, self._conditions_of_seed(key))
        if wanted != present:
            await self._write(shoot, key, wanted)
        return Done()

    def _conditions_of_seed(self, shoot: Key) -> list[Object]:
        """Of the Seed that runs on the Shoot; none if there is no such Seed."""
        managed_seeds = self.managed_seeds.keys_by_index(BY_SHOOT, shoot)
        if len(managed_seeds) > 1:
            raise ReconcileError(f"found more than one ManagedSeed objects for shoot {shoot}")
        seeds = (self.seeds.get(Key("", key.name)) for key in managed_seeds)
        return [condition for seed in seeds if seed is not None for condition in conditions(seed)]

    async def _write(self, shoot: Object, key: Key, wanted: list[Object]) -> None:
        # The gardenlet writes the same list: after a conflict it is computed anew.
        body = {
            "metadata": {"resourceVersion": metadata(shoot)["resourceVersion"]},
            "status": {"conditions": wanted or None},
        }
        try:
            written = await self.client.patch(SHOOTS, key.name, body, namespace=key.namespace, subresource="status")
        except NotFound:
            return
        self.shoots.observe(written)
