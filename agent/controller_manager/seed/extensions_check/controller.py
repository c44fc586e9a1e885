"""The controller `seed-extensions-check`.

ControllerInstallations   that come, go, or have another condition: their Seed
Seeds                     whose condition somebody else has changed
"""

from agent.controller_manager.common.api import CONTROLLER_INSTALLATIONS_VIEW, SEEDS_VIEW
from agent.controller_manager.common.seed_conditions import SeedConditions
from agent.controller_manager.context import Context
from agent.controller_manager.seed.extensions_check.reconcile import Reconciler
from agent.controller_manager.seed.extensions_check.watched import Watched
from gardener.garden.resources import SEEDS
from kube.loop import ControlLoop, enqueue_mapped


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
