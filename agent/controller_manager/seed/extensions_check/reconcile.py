"""One pass over a Seed: its condition says how its ControllerInstallations are."""

from agent.controller_manager.common.api import BY_SEED
from agent.controller_manager.common.seed_conditions import SeedConditions
from agent.controller_manager.seed.extensions_check.rules import condition_of
from gardener.conditions import EXTENSIONS_READY
from kube.cache import Store
from kube.controller import Done, Result
from kube.objects import Key, Object, condition


class Reconciler:
    def __init__(self, *, seeds: Store[Object], installations: Store[Object], conditions: SeedConditions) -> None:
        self._seeds = seeds
        self._installations = installations
        self._conditions = conditions

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None:
            return Done()
        installations = self._installations.values_by_index(BY_SEED, key.name)
        if not installations and condition(seed, EXTENSIONS_READY) is None:
            return Done()  # it never had any
        return await self._conditions.soften_and_write(seed, condition_of(installations))
