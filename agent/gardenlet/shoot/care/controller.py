"""The controller `shoot-care`: conditions and constraints of the Shoots of this seed.

Shoots         new ones, spread over time; when an operation has succeeded, or a control plane was placed
the seed       changes of checked objects: see `stores`
a timer        every `syncPeriod`

A check costs one request to the Shoot's API server, and now and then a few lists. The rest comes from caches.
"""

import random
from collections.abc import Awaitable, Callable

from agent.gardenlet.common.views import shoots_view
from agent.gardenlet.context import Context
from agent.gardenlet.shoot.care.inside import Inspection
from agent.gardenlet.shoot.care.reconcile import Reconciler
from agent.gardenlet.shoot.care.stores import Stores
from agent.gardenlet.shoot.care.webhooks import Webhooks
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import is_current, is_on, last_operation, responsible_seed
from kube.objects import Key, Object
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, EventHandler, Queue
from kube.runtime.predicates import Predicate, all_of, any_of, changed, now
from kube.runtime.priorities import CHANGE, RESYNC

NAME = "shoot-care"
_LONGEST_SECONDS = 120.0


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_care, context.garden
    loop = ControlLoop(NAME, kind=SHOOTS, workers=settings.concurrent_syncs, time_limit=_LONGEST_SECONDS)
    shoots = loop.watch(garden.caches, shoots_view(context.seed_name), _spread(settings.sync_period))
    names: dict[str, Key] = {}
    loop.on_start(_counted(loop, context, shoots))
    loop.on_close(context.shoot_clusters.close)
    return loop.reconciled_by(
        Reconciler(
            settings=settings,
            seed_name=context.seed_name,
            seed=context.seed.client,
            shoots=shoots,
            statuses=context.statuses.of(garden, shoots, still=is_on(context.seed_name)),
            stores=Stores(loop, context, shoot_of=names.get),
            clusters=context.shoot_clusters,
            inspection=Inspection(
                clusters=context.shoot_clusters,
                seed=context.seed.client,
                webhooks=Webhooks(
                    remediates=settings.webhook_remediator_enabled,
                    recorder=context.garden_recorder,
                    clock=context.clock,
                ),
                clock=context.clock,
                has_tunnels=context.config.has_tunnels,
            ),
            is_monitored=context.config.monitoring.shoot.enabled,
            names=names,
            clock=context.clock,
        )
    )


def _counted(loop: ControlLoop, context: Context, shoots: Store[Object]) -> Callable[[], Awaitable[None]]:
    """Count the Shoots that this seed reports while the loop runs."""

    async def follow() -> None:
        own = context.seed_name
        unfollow = context.metrics.shoots.follow(
            lambda: (each for each in shoots.values() if responsible_seed(each) == own)
        )

        async def end() -> None:
            unfollow()

        loop.on_close(end)

    return follow


def _spread(period: float) -> EventHandler[Object]:
    """Spread first checks; check at once after an operation has succeeded, or the Shoot was placed or replaced."""
    is_new: Predicate[Object] = changed("metadata.uid", "status.technicalID", "status.seedName", "spec.seedName")
    has_succeeded: Predicate[Object] = all_of(
        now(lambda shoot: last_operation(shoot).get("state") == "Succeeded"), changed("status.lastOperation")
    )
    is_of_interest = any_of(is_new, has_succeeded)

    def handle(queue: Queue, change: Change[Object]) -> None:
        if change.new is not None and change.old is None and is_current(change.new):
            queue.add_after(change.key, random.uniform(0, period), RESYNC)  # noqa: S311 - only spreads
        elif is_of_interest(change):
            queue.add(change.key, CHANGE)

    return handle
