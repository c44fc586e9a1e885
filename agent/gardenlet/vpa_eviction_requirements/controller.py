"""The controller `vpa-eviction-requirements`: when pods may be evicted to get less than they have.

VerticalPodAutoscalers   that come, and changes of annotations and requirements of those with its label; a timer for
                         when the maintenance window opens and closes

As with the original, the label alone leads to no pass: an autoscaler that gets it later is looked at when something
else changes. So all are watched, and little is kept of those without the label. They are watched as soon as they are
served: the seed flow defines them.
"""

from agent.gardenlet.context import Context
from agent.gardenlet.vpa_eviction_requirements.autoscaler import Autoscaler
from agent.gardenlet.vpa_eviction_requirements.reconcile import Reconciler
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
