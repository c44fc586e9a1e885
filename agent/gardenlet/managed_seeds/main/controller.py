"""The controller `managedseed`, and its watches.

ManagedSeeds  with a Shoot on the own Seed: new ones, deletions and spec changes at once; at the start spread over time
Seeds         deletions: the ManagedSeed of the same name
Shoots        arriving at or leaving the own Seed, or with a finished operation: their ManagedSeeds
"""

from datetime import timedelta

from agent.gardenlet.common.charts.helm import Helm
from agent.gardenlet.common.views import BY_SHOOT, MANAGED_SEEDS_VIEW, SEEDS_VIEW, shoots_view
from agent.gardenlet.context import Context
from agent.gardenlet.managed_seeds.installation.credentials import credentials_of
from agent.gardenlet.managed_seeds.installation.installation import Installer
from agent.gardenlet.managed_seeds.installation.target import Remembered
from agent.gardenlet.managed_seeds.main.deploy import Deployer
from agent.gardenlet.managed_seeds.main.reconcile import Reconciler
from agent.gardenlet.managed_seeds.main.remove import Remover
from agent.gardenlet.managed_seeds.main.rollouts import Rollouts
from agent.gardenlet.managed_seeds.main.rules.gardenlet import is_reconciled
from agent.gardenlet.managed_seeds.main.rules.timing import Timing, is_asked
from gardener import conditions
from gardener.api.garden import MANAGED_SEEDS
from gardener.garden.shoots import is_on
from gardener.network_policies import GARDEN_NAMESPACE
from kube.objects import Key, Object, condition, is_deleting, key
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, Queue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, any_of, changed, happened, now, updated, went
from kube.runtime.priorities import CHANGE, RESYNC, Priority
from kube.runtime.status import StatusWriter

NAME = "managedseed"


def declare(context: Context) -> ControlLoop:
    return declare_with(context, Helm())


def declare_with(context: Context, helm: Helm) -> ControlLoop:
    settings, garden = context.config.controllers.managed_seed, context.garden
    loop = ControlLoop(NAME, kind=MANAGED_SEEDS, workers=settings.concurrent_syncs)
    loop.on_close(context.shoot_clusters.close)
    timing = Timing(settings)

    def of_shoot(queue: Queue, change: Change[Object]) -> None:
        _of_shoot(queue, change, reconciler, timing)

    shoots = loop.watch(garden.caches, shoots_view(context.seed_name), of_shoot)

    def spread(queue: Queue, change: Change[Object]) -> None:
        new = change.new
        if new is None:
            queue.add(change.key, CHANGE)
        elif reconciler.is_own(new):
            if change.old is not None and is_asked(change.old, new):
                reconciler.requested.add(change.key)
            delay = timing.found(new) if change.old is None else timing.changed(change.old, new)
            if delay is not None:
                queue.add_after(change.key, delay, _priority(change))

    managed_seeds = loop.watch(garden.caches, MANAGED_SEEDS_VIEW, spread)
    deployer = Deployer(
        context=context,
        installer=Installer(helm=helm, credentials=credentials_of(context)),
        remembered=Remembered(),
    )
    reconciler = Reconciler(
        context=context,
        settings=settings,
        managed_seeds=managed_seeds,
        shoots=shoots,
        statuses=StatusWriter(garden.client, managed_seeds),
        deployer=deployer,
        remover=Remover(context, deployer),
        rollouts=Rollouts(settings.max_concurrent_rollouts, timedelta(seconds=settings.sync_period), context.clock),
    )

    def of_seed(change: Change[Object]) -> list[Key]:
        found = managed_seeds.get(Key(GARDEN_NAMESPACE, change.key.name))
        return [] if found is None or not reconciler.is_own(found) else [key(found)]

    loop.watch(garden.caches, SEEDS_VIEW, enqueue_mapped(of_seed, when=_GOES))
    return loop.reconciled_by(reconciler)


def _of_shoot(queue: Queue, change: Change[Object], reconciler: Reconciler, timing: Timing) -> None:
    """Enqueue the ManagedSeeds of a Shoot; at the start spread over time, as for ManagedSeeds."""
    is_here = is_on(reconciler.context.seed_name)
    is_given_or_taken = changed(is_here)(change)
    if not (is_given_or_taken or _HAS_COME_UP(change)):
        return
    for each in reconciler.managed_seeds.values_by_index(BY_SHOOT, change.key):
        if is_given_or_taken:
            if change.new is not None and not is_here(change.new):
                reconciler.forget_host(key(each))
            queue.forget(key(each))
            queue.add_after(key(each), timing.found(each) if change.initial else 0.0, _priority(change))
        elif not _has_waited(each):
            queue.add(key(each), CHANGE)


def _priority(change: Change[Object]) -> Priority:
    return RESYNC if change.initial else CHANGE


_HAS_COME_UP: Predicate[Object] = all_of(happened, now(is_reconciled), changed(is_reconciled))
_GOES: Predicate[Object] = any_of(went, all_of(updated, changed(is_deleting)))


def _has_waited(managed_seed: Object) -> bool:
    """Whether it has proceeded since its Shoot was reconciled."""
    return (condition(managed_seed, conditions.SHOOT_RECONCILED) or {}).get("status") == "True"
