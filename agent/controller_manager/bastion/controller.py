"""The controller `bastion`: Bastions go when they have expired, are too old, or their Shoot is gone or elsewhere.

Bastions   all changes, those of the status alone a moment later; and a timer for the end of each
Shoots     that are deleted or move: their Bastions
"""

from datetime import timedelta
from functools import partial

from agent.controller_manager.bastion.reconcile import Reconciler
from agent.controller_manager.bastion.rules import Bastion
from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from gardener.api.garden import BASTIONS
from kube.objects import Key, Object
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, Queue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, any_of, changed, updated, went
from kube.runtime.queue import CHANGE, RESYNC
from kube.runtime.status import StatusWriter

_BY_SHOOT = "shoot"
_PATIENCE_SECONDS = 1.0


moves_or_goes: Predicate[Object] = any_of(went, all_of(updated, changed("metadata.deletionTimestamp", "spec.seedName")))


def _shoot_of(bastion: Bastion) -> tuple[Key, ...]:
    return (bastion.shoot,)


_BASTIONS_VIEW = View(BASTIONS, Bastion.of, indexes=((_BY_SHOOT, _shoot_of),))


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.bastion, context.garden
    loop = ControlLoop("bastion", kind=BASTIONS, workers=settings.concurrent_syncs)
    bastions = loop.watch(garden.caches, _BASTIONS_VIEW, _enqueue_changed)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue_mapped(partial(_bastions_of, bastions), when=moves_or_goes))
    return loop.reconciled_by(
        Reconciler(
            client=garden.client,
            status=StatusWriter(garden.client, bastions),
            bastions=bastions,
            shoots=shoots,
            max_lifetime=timedelta(seconds=settings.max_lifetime),
            clock=context.clock,
        )
    )


def _enqueue_changed(queue: Queue, change: Change[Bastion]) -> None:
    """Most changes of the status are heartbeats, after which nothing is to be done but to wait longer."""
    old, new = change.old, change.new
    if new is None:
        return
    if change.initial:
        queue.add(change.key, RESYNC)
    elif old is not None and old.generation == new.generation and not new.asks_for_heartbeat:
        queue.add_after(change.key, _PATIENCE_SECONDS, CHANGE)
    else:
        queue.add(change.key, CHANGE)


def _bastions_of(bastions: Store[Bastion], change: Change[Object]) -> list[Key]:
    return bastions.keys_by_index(_BY_SHOOT, change.key)
