"""The controller `vpa-eviction-requirements`: restricts evictions that scale pods down.

VerticalPodAutoscalers   new ones, and changes of annotations and requirements of those with its label; a timer for
                         the start and end of the maintenance window

As with the original, a new label alone triggers no pass: such an autoscaler is reconciled when something else changes.
So all are watched, and few fields of those without the label are cached. They are watched as soon as they are served:
the seed flow defines them.
"""

from agent.gardenlet.context import Context
from agent.gardenlet.seed.vpa_eviction_requirements.autoscaler import Autoscaler
from agent.gardenlet.seed.vpa_eviction_requirements.reconcile import Reconciler
from gardener.api.kinds import VERTICAL_POD_AUTOSCALERS
from kube.runtime.cache import Change, View
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import Predicate, all_of, any_of, changed, listed, now

NAME = "vpa-eviction-requirements"
_VIEW = View(VERTICAL_POD_AUTOSCALERS, Autoscaler.of)


def declare(context: Context) -> ControlLoop:
    settings, seed = context.config.controllers.vpa_eviction_requirements, context.seed
    loop = ControlLoop(NAME, kind=VERTICAL_POD_AUTOSCALERS, workers=settings.concurrent_syncs)
    reconciler = Reconciler(client=seed.client, clock=context.clock)

    def watch() -> None:
        reconciler.autoscalers = loop.watch(seed.caches, _VIEW, enqueue(when=_affects))

    loop.when_served(seed.discovery, (VERTICAL_POD_AUTOSCALERS,), watch)
    return loop.reconciled_by(reconciler)


def _is_new(change: Change[Autoscaler]) -> bool:
    return change.old is None


def _was_managed(change: Change[Autoscaler]) -> bool:
    return change.old is not None and change.old.is_managed


_affects: Predicate[Autoscaler] = all_of(
    now(lambda autoscaler: autoscaler.is_managed),
    any_of(
        _is_new,
        listed,
        changed(lambda autoscaler: autoscaler.annotations),
        all_of(_was_managed, changed(lambda autoscaler: autoscaler.requirements)),
    ),
)
