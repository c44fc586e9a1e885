"""The controller `project-stale`: a pass in a sync period, and when time makes a difference.

    Projects     that come, are used, get another namespace, or have a spec that was not looked at yet
    Namespaces   that come, or are exempted from the check

What may use a Project is watched, but leads to no pass: `project-activity` writes it into the status of the Project.
"""

from functools import partial

from agent.controller_manager.common.api import BY_NAMESPACE, NAMESPACES_VIEW, PROJECTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.project.stale.reconcile import Reconciler
from agent.controller_manager.project.stale.rules import AUTO_DELETE, LAST_ACTIVITY, SINCE, is_exempt
from agent.controller_manager.project.stale.usage import Usage
from gardener.api.garden import PROJECTS
from kube.objects import Key, Object, metadata
from kube.paths import at
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, any_of, changed, exists, listed


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.project, context.garden
    loop = ControlLoop("project-stale", kind=PROJECTS, workers=settings.concurrent_syncs)
    projects = loop.watch(garden.caches, PROJECTS_VIEW, enqueue(when=_triggers))
    namespaces = loop.watch(
        garden.caches,
        NAMESPACES_VIEW,
        enqueue_mapped(partial(_of_namespace, projects), when=all_of(exists, changed(is_exempt))),
    )
    reconciler = Reconciler(
        client=garden.client,
        projects=projects,
        namespaces=namespaces,
        usage=Usage.watched(loop, garden.caches),
        settings=settings,
        clock=context.clock,
        dry_run=context.dry_run,
    )
    return loop.reconciled_by(reconciler)


def _is_observed(project: Object) -> bool:
    return bool(at(project, "status", "observedGeneration") == metadata(project).get("generation"))


_times = (f"status.{field}" for field in (LAST_ACTIVITY, SINCE, AUTO_DELETE))
_triggers: Predicate[Object] = all_of(exists, any_of(listed, changed("spec.namespace", _is_observed, *_times)))


def _of_namespace(projects: Store[Object], change: Change[Object]) -> list[Key]:
    return projects.keys_by_index(BY_NAMESPACE, change.key.name)
