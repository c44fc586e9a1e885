"""The controller `seed-backupbuckets-check`.

BackupBuckets   that come, go, or have another error: their Seed
Seeds           whose condition somebody else has changed
"""

from agent.controller_manager.common.api import BACKUP_BUCKETS_VIEW, BY_SEED, SEEDS_VIEW
from agent.controller_manager.common.seed_conditions import SeedConditions, condition_changed
from agent.controller_manager.context import Context
from agent.controller_manager.seed.backup_buckets_check.rules import condition_of, error_of, seed_of
from gardener.api.garden import SEEDS
from gardener.conditions import BACKUP_BUCKETS_READY
from kube.objects import Key, Object, condition
from kube.runtime.cache import Change, Store
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed_backup_buckets_check, context.garden.caches
    loop = ControlLoop(
        "seed-backupbuckets-check",
        kind=SEEDS,
        workers=settings.concurrent_syncs,
        time_limit=settings.time_limit,
        max_backoff=settings.sync_period,
    )
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue(when=condition_changed(BACKUP_BUCKETS_READY)))
    buckets = loop.watch(caches, BACKUP_BUCKETS_VIEW, enqueue_mapped(_seeds, when=_matters))
    conditions = SeedConditions(context, seeds, thresholds=settings.condition_thresholds)
    return loop.reconciled_by(Reconciler(seeds=seeds, buckets=buckets, conditions=conditions))


def _matters(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or (seed_of(old), error_of(old)) != (seed_of(new), error_of(new))


def _seeds(change: Change[Object]) -> list[Key]:
    names = {seed_of(bucket) for bucket in (change.old, change.new) if bucket is not None} - {""}
    return [Key("", name) for name in sorted(names)]


class Reconciler:
    """One pass over a Seed: its condition says how its BackupBuckets are."""

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
