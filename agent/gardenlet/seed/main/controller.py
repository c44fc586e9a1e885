"""The controller `seed`: reconciles the seed cluster of this gardenlet.

The own Seed triggers a pass at the start, on a new generation, and when it is deleted. Other changes are handled by the
next regular pass.
"""

import structlog

from agent.gardenlet.common.component_objects import ComponentObjects
from agent.gardenlet.common.views import CONTROLLER_REGISTRATIONS_VIEW, SEEDS_VIEW, controller_installations_view
from agent.gardenlet.context import Context
from agent.gardenlet.flow.waiting import NotedWaiting
from agent.gardenlet.seed.main import components
from agent.gardenlet.seed.main.reconcile import FLOW_SECONDS, Reconciler
from components.seed_registry import deployed
from gardener.api.garden import SEEDS
from kube.objects import Key, Object
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import Predicate, all_of, any_of, changed, exists, listed

_ENDS_SECONDS = 600.0
"""Seconds in addition to the flow: for prerequisites, and for the deletion of BackupBuckets."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    own = Key("", context.seed_name)
    loop = ControlLoop("seed", kind=SEEDS, time_limit=FLOW_SECONDS + _ENDS_SECONDS)

    def is_own(change: Change[Object]) -> bool:
        return change.key == own

    asks: Predicate[Object] = changed("metadata.uid", "metadata.generation", "metadata.deletionTimestamp")
    seeds = loop.watch(context.garden.caches, SEEDS_VIEW, enqueue(when=all_of(is_own, exists, any_of(listed, asks))))
    installations = loop.watch(context.garden.caches, controller_installations_view(context.seed_name))
    registrations = loop.watch(context.garden.caches, CONTROLLER_REGISTRATIONS_VIEW)
    objects = ComponentObjects(context.seed, scope="seed", writes=context.writes)
    loop.on_close(objects.close)
    if left_out := components.left_out(context.config):
        log.info("The configuration deploys no components of the seed", components=left_out)
    return loop.reconciled_by(
        Reconciler(
            config=context.config,
            gardener=context.gardener,
            seed=context.seed,
            garden=context.garden,
            seeds=seeds,
            installations=installations,
            registrations=registrations,
            statuses=context.seed_statuses(seeds),
            objects=objects,
            waiting=NotedWaiting(
                client=context.seed.client, caches=context.seed.caches, discovery=context.seed.discovery
            ),
            components=deployed(context.config),
            recorder=context.garden_recorder,
            certificate_expires=context.certificate_expires,
            flows=context.flows,
            clock=context.clock,
        )
    )
