"""One pass over a Seed: its condition says how its BackupBuckets are."""

from agent.controller_manager.common.api import BY_SEED
from agent.controller_manager.common.seed_conditions import SeedConditions
from agent.controller_manager.seed.backup_buckets_check.rules import condition_of
from gardener.conditions import BACKUP_BUCKETS_READY
from kube.cache import Store
from kube.controller import Done, Result
from kube.objects import Key, Object, condition


class Reconciler:
    def __init__(self, *, seeds: Store[Object], buckets: Store[Object], conditions: SeedConditions) -> None:
        self._seeds = seeds
        self._buckets = buckets
        self._conditions = conditions

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None:
            return Done()
        buckets = self._buckets.values_by_index(BY_SEED, key.name)
        if not buckets and condition(seed, BACKUP_BUCKETS_READY) is None:
            return Done()  # it never had any
        return await self._conditions.soften_and_write(seed, condition_of(buckets))
