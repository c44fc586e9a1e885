"""The controller `shoot`.

Shoots  of the own Seed: that come, at a time that spreads them; that are asked for something (their generation), or are
        to be deleted: at once; that are given to it: in a moment
Seeds   the own one, once it is ready: Shoots whose operations wait for that

When a gardenlet starts, all its Shoots may be due. As many as there are workers are worked on at a time, of which some
are kept for what is asked for meanwhile. Those that sleep, and those that have failed, come when no other waits.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from agent.gardenlet.component_objects import ComponentObjects
from agent.gardenlet.context import Context
from agent.gardenlet.flow.waiting import NotedWaiting
from agent.gardenlet.shoot.main.departure import Departures
from agent.gardenlet.shoot.main.flows.delete import DELETE
from agent.gardenlet.shoot.main.flows.migrate import MIGRATE
from agent.gardenlet.shoot.main.flows.reconcile import RECONCILE, RESTORE
from agent.gardenlet.shoot.main.preview import ShootPreviews
from agent.gardenlet.shoot.main.reconcile import Reconciler
from agent.gardenlet.shoot.main.rules.seed import problem
from agent.gardenlet.shoot.main.rules.timing import Due, Timing
from agent.gardenlet.shoot.main.tasks.force import USUAL, Patience
from agent.gardenlet.shoot.responsibility import is_to_be_restored
from agent.gardenlet.views import CONTROLLER_REGISTRATIONS_VIEW, SEEDS_VIEW, shoots_view
from gardener import operations
from gardener.api.druid import ETCDS
from gardener.api.extensions import DNS_RECORDS
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import is_on, responsible_seed
from kube.objects import Key, Object, text
from kube.resources import DEPLOYMENTS
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, EventHandler, Queue
from kube.runtime.predicates import Predicate, all_of, any_of, changed, now
from kube.runtime.priorities import CHANGE, LAST, RESYNC, Priority

FLOWS = {
    operations.CREATE: RECONCILE,
    operations.RECONCILE: RECONCILE,
    operations.DELETE: DELETE,
    operations.MIGRATE: MIGRATE,
    operations.RESTORE: RESTORE,
}

_TOGETHER = (DEPLOYMENTS, DNS_RECORDS, ETCDS)
"""Of these there are several in the namespace of a Shoot, waited for at the same time."""
_ASKED_SECONDS = 2.0
_LONGEST_SECONDS = 7200.0
"""Of one operation: each of its waits has a limit of its own."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context, *, patience: Patience = USUAL) -> ControlLoop:
    """Args: patience: with what holds a Shoot that is removed by force."""
    settings, seed, garden = context.config.controllers.shoot, context.seed, context.garden
    loop = ControlLoop("shoot", kind=SHOOTS, workers=settings.concurrent_syncs, time_limit=_LONGEST_SECONDS)
    timing = Timing(
        settings=settings,
        version=text(context.gardener.get("version")),
        is_asked=context.api.is_due,
    )
    shoots = loop.watch(garden.caches, shoots_view(context.seed_name), spread(timing, context.clock))
    held = set[Key]()
    waited = released(held, context.seed_name, context.gardener, lambda name: _after_waiting(timing, shoots.get(name)))
    seeds = loop.watch(garden.caches, SEEDS_VIEW, waited)
    registrations = loop.watch(garden.caches, CONTROLLER_REGISTRATIONS_VIEW)
    objects = ComponentObjects(seed, scope="shoot", writes=context.writes)
    loop.on_close(objects.close, context.shoot_clusters.close)
    reconciler = Reconciler(
        config=context.config,
        seed_name=context.seed_name,
        gardener=context.gardener,
        garden_identity=context.garden_identity,
        seed=seed,
        garden=garden,
        api=context.api,
        shoots=shoots,
        seeds=seeds,
        registrations=registrations,
        statuses=context.statuses.of(garden, shoots, still=is_on(context.seed_name)),
        objects=objects,
        waiting=NotedWaiting(client=seed.client, caches=seed.caches, discovery=seed.discovery, together=_TOGETHER),
        garden_waiting=NotedWaiting(client=garden.client, caches=garden.caches, discovery=garden.discovery),
        shoot_clusters=context.shoot_clusters,
        timing=timing,
        held=held,
        flows=FLOWS,
        records=context.flows,
        recorder=context.garden_recorder,
        period=settings.progress_report_period or 0.0,
        patience=patience,
        departures=Departures(
            seed_name=context.seed_name,
            version=text(context.gardener.get("version")),
            seeds=seeds,
            seed=seed.client,
            garden=garden.client,
            api=context.api,
            saves_states=context.config.controllers.shoot_state.concurrent_syncs > 0,
            clock=garden.clock,
        ),
        clock=context.clock,
    )
    context.previews.offer(SHOOTS.kind, ShootPreviews(reconciler).make)
    return loop.reconciled_by(reconciler)


def spread(timing: Timing, clock: Callable[[], datetime]) -> EventHandler[Object]:
    """What is found at the start comes at its time, what is asked for comes at once, however often it has failed."""
    asks: Predicate[Object] = changed("metadata.uid", "metadata.generation", "metadata.deletionTimestamp")
    given: Predicate[Object] = any_of(
        changed(responsible_seed), all_of(changed(is_to_be_restored), now(is_to_be_restored))
    )
    has_namespace: Predicate[Object] = changed("status.technicalID")

    def handle(queue: Queue, change: Change[Object]) -> None:
        if change.new is None:
            return
        if change.old is None:
            queue.forget(change.key)
            delay = timing.first_delay(change.new, clock())
            queue.add_after(change.key, delay, _in_bulk(timing, change.new) if change.initial else CHANGE)
        elif asks(change):
            queue.forget(change.key)
            queue.add(change.key, CHANGE)
        elif given(change):
            # The Seed that it comes from is about to ask for it, unless that has ended before, or was lost.
            queue.forget(change.key)
            queue.add_after(change.key, _ASKED_SECONDS, CHANGE)
        elif has_namespace(change) and timing.due(change.new, clock()) is Due.CLUSTER_ONLY:
            queue.add(change.key, CHANGE)  # extensions have not seen it yet

    return handle


def _in_bulk(timing: Timing, shoot: Object) -> Priority:
    """Of a Shoot that is due with many others."""
    return LAST if timing.can_wait(shoot) else RESYNC


def _after_waiting(timing: Timing, shoot: Object | None) -> Priority:
    """Of a Shoot that has waited for the Seed: what is asked for comes before what is only done once more."""
    return _in_bulk(timing, shoot) if shoot is not None and timing.is_repetition(shoot) else CHANGE


def released(
    held: set[Key], seed_name: str, gardener: Object, priority: Callable[[Key], Priority]
) -> EventHandler[Object]:
    """What waits for the Seed comes as soon as that is ready: each of its reconciliations takes a moment.

    Args:
        held: Shoots that wait; none does afterwards.
        seed_name: of the own Seed.
        gardener: id, name and version of this gardenlet.
        priority: with which one comes.
    """

    def handle(queue: Queue, change: Change[Object]) -> None:
        if change.key.name != seed_name or change.new is None:
            return
        if not problem(change.new, gardener=gardener):
            for each in held:
                queue.add(each, priority(each))
            held.clear()

    return handle
