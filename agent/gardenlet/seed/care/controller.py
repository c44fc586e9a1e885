"""The controller `seed-care`: a condition of the Seed reports the health of the components in its cluster.

Seeds              the own one: when it is created, and when its reconciliation has succeeded
ManagedResources   of the seed's namespaces: changes of their cached fields
a timer            of `syncPeriod`

Everything is read from caches, so that a check costs no request, unless policies are missing.
"""

from agent.gardenlet.common.views import SEEDS_VIEW
from agent.gardenlet.context import Context
from agent.gardenlet.seed.care.reconcile import Reconciler
from agent.gardenlet.seed.care.stores import Components, PoliciesElsewhere
from gardener.api.garden import SEEDS
from gardener.conditions import SEED_SYSTEM_COMPONENTS_HEALTHY
from kube.objects import Key, Object
from kube.paths import at
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import Predicate, all_of, any_of, came, changed, listed, now

NAME = "seed-care"
_LONGEST_PASS = 180.0


def _has_succeeded(seed: Object) -> bool:
    return bool(at(seed, "status", "lastOperation", "state") == "Succeeded")


_is_reconciled: Predicate[Object] = all_of(now(_has_succeeded), changed("status.lastOperation"))


def declare(context: Context) -> ControlLoop:
    settings, own = context.config.controllers.seed_care, Key("", context.seed_name)
    loop = ControlLoop(NAME, kind=SEEDS, time_limit=min(settings.sync_period, _LONGEST_PASS))

    def is_own(change: Change[Object]) -> bool:
        return change.key == own

    affects = all_of(is_own, any_of(came, listed, _is_reconciled))
    seeds = loop.watch(context.garden.caches, SEEDS_VIEW, enqueue(when=affects))
    thresholds = {each.type: each.duration for each in settings.condition_thresholds}
    return loop.reconciled_by(
        Reconciler(
            seeds=seeds,
            statuses=context.seed_statuses(seeds),
            components=Components(loop, context.seed, own=own, writes=context.writes),
            policies=PoliciesElsewhere.declared(loop, context.seed, context.config.controllers.network_policy),
            threshold=thresholds.get(SEED_SYSTEM_COMPONENTS_HEALTHY),
            period=settings.sync_period,
            clock=context.clock,
        )
    )
