"""The controller `project-stale`: a pass in a sync period, and when time makes a difference.

    Projects     that come, are used, get another namespace, or have a spec that nobody has looked at
    Namespaces   that come, or are exempted from the check

What may use a Project is watched, but leads to no pass: `project-activity` tells of it in the status of the Project.
"""

from functools import partial

from agent.controller_manager.common.api import BY_NAMESPACE, NAMESPACES_VIEW, PROJECTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.project.stale.reconcile import Reconciler
from agent.controller_manager.project.stale.rules import AUTO_DELETE, LAST_ACTIVITY, SINCE, is_exempt
from agent.controller_manager.project.stale.usage import Usage
from gardener.api.garden import PROJECTS
from kube.objects import Key, Object, mapping, metadata, spec
from kube.runtime.cache import Change, Store
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.project, context.garden
    loop = ControlLoop("project-stale", kind=PROJECTS, workers=settings.concurrent_syncs)
    projects = loop.watch(garden.caches, PROJECTS_VIEW, enqueue(when=_is_changed))
    namespaces = loop.watch(
        garden.caches, NAMESPACES_VIEW, enqueue_mapped(partial(_of_namespace, projects), when=_is_other)
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


def _is_changed(change: Change[Object]) -> bool:
    return change.new is not None and (change.initial or _said(change.old) != _said(change.new))


def _said(project: Object | None) -> tuple[object, ...]:
    if project is None:
        return ()
    status = mapping(project.get("status"))
    is_observed = status.get("observedGeneration") == metadata(project).get("generation")
    return (
        spec(project).get("namespace"),
        is_observed,
        *(status.get(field) for field in (LAST_ACTIVITY, SINCE, AUTO_DELETE)),
    )


def _is_other(change: Change[Object]) -> bool:
    old, new = change.old, change.new
    return new is not None and (old is None or is_exempt(old) != is_exempt(new))


def _of_namespace(projects: Store[Object], change: Change[Object]) -> list[Key]:
    return projects.keys_by_index(BY_NAMESPACE, change.key.name)
