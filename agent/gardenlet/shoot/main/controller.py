"""The controller `shoot`.

Shoots  of the own Seed: new ones, spread over time; a new generation or a deletion: at once; a change of the Seed, or a
        restore: shortly after
        ConfigMaps and Secrets that it names, while its operation has failed: see `corrections`
Seeds   the own one, once it is ready: Shoots whose operations wait for that

When a gardenlet starts, all its Shoots may be due. At most as many as there are workers are reconciled at a time; some
workers are reserved for user requests. Hibernated and failed Shoots come when no other waits.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.views import CONTROLLER_REGISTRATIONS_VIEW, SEEDS_VIEW, shoots_view
from agent.gardenlet.context import Context
from agent.gardenlet.flow.waiting import NotedWaiting
from agent.gardenlet.shoot.main.corrections import Corrections
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
"""Kinds with several objects in the namespace of a Shoot that are awaited at the same time."""
_ASKED_SECONDS = 2.0
_LONGEST_SECONDS = 7200.0
"""Time limit of one operation, in seconds; each of its waits has its own limit."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context, *, patience: Patience = USUAL) -> ControlLoop:
    """Args: patience: time limits of a force deletion."""
    settings, seed, garden = context.config.controllers.shoot, context.seed, context.garden
    loop = ControlLoop("shoot", kind=SHOOTS, workers=settings.concurrent_syncs, time_limit=_LONGEST_SECONDS)
    timing = Timing(settings=settings, version=text(context.gardener.get("version")), is_asked=context.api.is_due)
    shoots = loop.watch(garden.caches, shoots_view(context.seed_name), spread(timing, context.clock))
    corrections = Corrections(
        seed_name=context.seed_name, client=garden.client, caches=garden.caches, shoots=shoots, timing=timing
    )
    loop.watch(garden.caches, shoots_view(context.seed_name), corrections.follow)
    held = set[Key]()
    waited = released(held, context.seed_name, context.gardener, lambda name: _after_waiting(timing, shoots.get(name)))
    seeds = loop.watch(garden.caches, SEEDS_VIEW, waited)
    registrations = loop.watch(garden.caches, CONTROLLER_REGISTRATIONS_VIEW)
    objects = ComponentObjects(seed, scope="shoot", writes=context.writes)
    loop.on_close(corrections.close, objects.close, context.shoot_clusters.close)
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
            seed=seed,
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
    """Spread the first reconciliations; user requests are reconciled at once, regardless of previous failures."""
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
            # The previous Seed is about to request it, unless it has done so before, or was lost.
            queue.forget(change.key)
            queue.add_after(change.key, _ASKED_SECONDS, CHANGE)
        elif has_namespace(change) and timing.due(change.new, clock()) is Due.CLUSTER_ONLY:
            queue.add(change.key, CHANGE)  # extensions have not seen the namespace yet

    return handle


def _in_bulk(timing: Timing, shoot: Object) -> Priority:
    """Priority of a Shoot that is due with many others."""
    return LAST if timing.can_wait(shoot) else RESYNC


def _after_waiting(timing: Timing, shoot: Object | None) -> Priority:
    """Priority of a Shoot that waited for the Seed: user requests precede repetitions."""
    return _in_bulk(timing, shoot) if shoot is not None and timing.is_repetition(shoot) else CHANGE


def released(
    held: set[Key], seed_name: str, gardener: Object, priority: Callable[[Key], Priority]
) -> EventHandler[Object]:
    """Enqueue the waiting Shoots as soon as the Seed is ready.

    Args:
        held: Shoots that wait; emptied afterwards.
        seed_name: of the own Seed.
        gardener: id, name and version of this gardenlet.
        priority: returns the priority of a Shoot.
    """

    def handle(queue: Queue, change: Change[Object]) -> None:
        if change.key.name != seed_name or change.new is None:
            return
        if not problem(change.new, gardener=gardener):
            for each in held:
                queue.add(each, priority(each))
            held.clear()

    return handle
