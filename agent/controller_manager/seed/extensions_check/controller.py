"""The controller `seed-extensions-check`.

ControllerInstallations   that come, go, or have another condition: their Seed
Seeds                     whose condition somebody else has changed
"""

from agent.controller_manager.common.api import BY_SEED, CONTROLLER_INSTALLATIONS_VIEW, SEEDS_VIEW
from agent.controller_manager.common.seed_conditions import SeedConditions
from agent.controller_manager.context import Context
from agent.controller_manager.seed.extensions_check.rules import condition_of
from agent.controller_manager.seed.extensions_check.watched import Watched
from gardener.api.garden import SEEDS
from gardener.conditions import EXTENSIONS_READY
from kube.objects import Key, Object, condition
from kube.runtime.cache import Store
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, enqueue_mapped


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed_extensions_check, context.garden.caches
    loop = ControlLoop(
        "seed-extensions-check",
        kind=SEEDS,
        workers=settings.concurrent_syncs,
        time_limit=settings.time_limit,
        max_backoff=settings.sync_period,
    )
    seeds = loop.watch(caches, SEEDS_VIEW)
    installations = loop.watch(caches, CONTROLLER_INSTALLATIONS_VIEW)
    watched = Watched(seeds=seeds, installations=installations)
    loop.watch(caches, SEEDS_VIEW, enqueue_mapped(watched.by_seed))
    loop.watch(caches, CONTROLLER_INSTALLATIONS_VIEW, enqueue_mapped(watched.by_installation))
    conditions = SeedConditions(context, seeds, thresholds=settings.condition_thresholds)
    return loop.reconciled_by(Reconciler(seeds=seeds, installations=installations, conditions=conditions))


class Reconciler:
    """One pass over a Seed: its condition says how its ControllerInstallations are."""

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
