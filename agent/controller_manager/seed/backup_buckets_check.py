"""The controller `seed-backupbuckets-check`: reports the state of BackupBuckets in a condition of their Seed.

BackupBuckets   that come, go, or have another error: their Seed
Seeds           whose condition another writer has changed
"""

from collections.abc import Sequence

from agent.controller_manager.common.api import BACKUP_BUCKETS_VIEW, BY_SEED, SEEDS_VIEW
from agent.controller_manager.common.seeds import SeedConditions
from agent.controller_manager.context import Context
from gardener.api.garden import SEEDS
from gardener.conditions import BACKUP_BUCKETS_READY
from kube.conditions import Condition
from kube.objects import Key, Object, condition, metadata, spec, text
from kube.paths import at
from kube.runtime.cache import Change, Store
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import all_of, changed, updated


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed_backup_buckets_check, context.garden.caches
    loop = ControlLoop(
        "seed-backupbuckets-check",
        kind=SEEDS,
        workers=settings.concurrent_syncs,
        time_limit=settings.time_limit,
        max_backoff=settings.sync_period,
    )
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue(when=all_of(updated, changed(_own_condition))))
    buckets = loop.watch(caches, BACKUP_BUCKETS_VIEW, enqueue_mapped(_seeds, when=changed(seed_of, error_of)))
    conditions = SeedConditions(context, seeds, thresholds=settings.condition_thresholds)
    return loop.reconciled_by(Reconciler(seeds=seeds, buckets=buckets, conditions=conditions))


def _own_condition(seed: Object) -> Object | None:
    return condition(seed, BACKUP_BUCKETS_READY)


def _seeds(change: Change[Object]) -> list[Key]:
    names = {seed_of(bucket) for bucket in (change.old, change.new) if bucket is not None} - {""}
    return [Key("", name) for name in sorted(names)]


class Reconciler:
    """One pass over a Seed: its condition reports the state of its BackupBuckets."""

    def __init__(self, *, seeds: Store[Object], buckets: Store[Object], conditions: SeedConditions) -> None:
        self._seeds = seeds
        self._buckets = buckets
        self._conditions = conditions

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None:
            return Done()
        buckets = self._buckets.values_by_index(BY_SEED, key.name)
        if not buckets and _own_condition(seed) is None:
            return Done()  # it never had any
        return await self._conditions.soften_and_write(seed, condition_of(buckets))


def condition_of(buckets: Sequence[Object]) -> Condition:
    erroneous = [bucket for bucket in buckets if error_of(bucket) is not None]
    if erroneous:
        lines = "".join(f"\n* Name: {metadata(each).get('name')}, Error: {error_of(each)}" for each in erroneous)
        message = f"The following BackupBuckets have issues:{lines}"
        return Condition(BACKUP_BUCKETS_READY, "False", "BackupBucketsError", message)
    if not buckets:
        return Condition(BACKUP_BUCKETS_READY, "Unknown", "BackupBucketsGone", "Backup Buckets are gone.")
    return Condition(BACKUP_BUCKETS_READY, "True", "BackupBucketsAvailable", "Backup Buckets are available.")


def error_of(bucket: Object) -> str | None:
    """Last error of the BackupBucket; None if there is none."""
    error = at(bucket, "status", "lastError")
    return text(error.get("description")) if isinstance(error, dict) else None


def seed_of(bucket: Object) -> str:
    return text(spec(bucket).get("seedName"))
