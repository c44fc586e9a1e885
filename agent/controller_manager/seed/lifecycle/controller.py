"""The controller `seed-lifecycle`.

Seeds         that come, are reported on, or get another phase
Leases        that come or go, and all of lost Seeds
ManagedSeeds  of lost Seeds, if they come
Shoots        of lost Seeds, that do not say so yet
"""

from datetime import datetime
from functools import partial

from agent.controller_manager.common.api import MANAGED_SEEDS_VIEW, SEEDS_VIEW, SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.seed.lifecycle import rules
from agent.controller_manager.seed.lifecycle.reconcile import Reconciler
from gardener import conditions
from gardener.api.garden import SEEDS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seeds import LEASE_NAMESPACE, phase_of
from kube.conditions import conditions_of
from kube.objects import Key, Object, condition
from kube.resources import LEASES
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, any_of, changed, exists, listed

_LEASES_VIEW = View(LEASES, rules.renewal_of, namespace=LEASE_NAMESPACE)


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed, context.garden.caches
    loop = ControlLoop(
        "seed-lifecycle", kind=SEEDS, workers=settings.concurrent_syncs, max_backoff=settings.sync_period
    )
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue(when=_triggers))
    leases = loop.watch(caches, _LEASES_VIEW, enqueue_mapped(partial(_of_lease, seeds)))
    managed_seeds = loop.watch(caches, MANAGED_SEEDS_VIEW, enqueue_mapped(partial(_of_managed_seed, seeds)))
    shoots = loop.watch(caches, SHOOTS_VIEW, enqueue_mapped(partial(_of_shoot, context, seeds)))
    return loop.reconciled_by(
        Reconciler(context, seeds=seeds, leases=leases, managed_seeds=managed_seeds, shoots=shoots)
    )


def _gardenlet_ready(seed: Object) -> Object | None:
    return condition(seed, conditions.GARDENLET_READY)


def _summed_up(seed: Object) -> str:
    return phase_of(conditions_of(seed))


_triggers: Predicate[Object] = all_of(
    exists,
    any_of(listed, changed(rules.is_reported, _gardenlet_ready, rules.certificate_expires, "status.phase", _summed_up)),
)


def _is_unknown(seeds: Store[Object], name: str) -> bool:
    seed = seeds.get(Key("", name))
    return seed is not None and rules.is_unknown(seed)


def _of_lease(seeds: Store[Object], change: Change[datetime | None]) -> list[Key]:
    """Regular renewals are seen when it is time to look."""
    name, old, new = change.key.name, change.old, change.new
    is_renewed = old is not None and new is not None and old < new
    return [] if is_renewed and not _is_unknown(seeds, name) else [Key("", name)]


def _of_managed_seed(seeds: Store[Object], change: Change[Object]) -> list[Key]:
    name = change.key.name
    is_new = change.old is None and change.key.namespace == NAMESPACE
    return [Key("", name)] if is_new and _is_unknown(seeds, name) else []


def _of_shoot(context: Context, seeds: Store[Object], change: Change[Object]) -> list[Key]:
    shoot = change.new
    if shoot is None or not _is_unknown(seeds, rules.seed_of(shoot)):
        return []
    return [] if rules.is_abandoned(shoot, now=context.clock()) else [Key("", rules.seed_of(shoot))]
