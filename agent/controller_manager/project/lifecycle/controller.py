"""The controller `project`: keeps namespaces, quotas and rights of Projects as specified.

Projects         that change, but for their status
Namespaces       the Project that it belongs to, or that controls it
ResourceQuotas   the Project of the namespace
RoleBindings, ClusterRoleBindings, ClusterRoles
                 the Project that controls it
Shoots           that are gone: the Project of the namespace, if it waits for that
"""

from collections.abc import Iterator
from functools import partial

from agent.controller_manager.common.api import BY_NAMESPACE, NAMESPACES_VIEW, PROJECTS_VIEW, SHOOTS_VIEW
from agent.controller_manager.context import Context
from agent.controller_manager.project.lifecycle import quota
from agent.controller_manager.project.lifecycle.rbac import PresentRight, controlling_project
from agent.controller_manager.project.lifecycle.reconcile import Events, ProjectStores, Reconciler
from agent.controller_manager.project.lifecycle.rights import BY_PROJECT, KINDS
from gardener.api.garden import PROJECTS
from gardener.keys import GARDENER_FINALIZER
from kube.objects import Key, Object, finalizers, is_deleting
from kube.resources import RESOURCE_QUOTAS
from kube.runtime.cache import Change, Store, View
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped, enqueue_users
from kube.runtime.predicates import Predicate, any_of, changed, listed, now, went


def _project_of(present: PresentRight | None) -> tuple[str, ...]:
    return () if present is None else (present.project,)


_QUOTAS_VIEW = View(RESOURCE_QUOTAS, quota.limits_only, field_selector=f"metadata.name={quota.NAME}")
_RIGHTS_VIEWS = {
    kind: View(kind, PresentRight.of_project, indexes=((BY_PROJECT, _project_of),), most=64 << 10) for kind in KINDS
}


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.project, context.garden
    loop = ControlLoop("project", kind=PROJECTS, workers=settings.concurrent_syncs)
    projects = loop.watch(garden.caches, PROJECTS_VIEW, enqueue(when=_triggers))
    in_namespace = partial(_with_namespace, projects)
    stores = ProjectStores(
        projects=projects,
        namespaces=loop.watch(garden.caches, NAMESPACES_VIEW, enqueue_mapped(partial(_of_namespace, projects))),
        quotas=loop.watch(
            garden.caches, _QUOTAS_VIEW, enqueue_mapped(lambda change: in_namespace(change.key.namespace))
        ),
        shoots=loop.watch(garden.caches, SHOOTS_VIEW, enqueue_users(partial(_waiting, projects), when=went)),
        rights={
            kind: loop.watch(garden.caches, view, enqueue_mapped(_controlling)) for kind, view in _RIGHTS_VIEWS.items()
        },
    )
    reconciler = Reconciler(
        client=garden.client, stores=stores, events=Events(context.recorder), quotas=settings.quotas
    )
    return loop.reconciled_by(reconciler)


def _lacks_finalizer(project: Object) -> bool:
    return GARDENER_FINALIZER not in finalizers(project)


_parts = (f"metadata.{field}" for field in ("deletionTimestamp", "generation", "labels", "uid"))
_triggers: Predicate[Object] = any_of(listed, changed(*_parts), now(_lacks_finalizer))
"""Changes that lead to a pass; not those of the status, nor writes of the first pass."""


def _with_namespace(projects: Store[Object], namespace: str) -> list[Key]:
    return projects.keys_by_index(BY_NAMESPACE, namespace)


def _of_namespace(projects: Store[Object], change: Change[Object]) -> set[Key]:
    controllers = {controlling_project(each) for each in (change.old, change.new) if each is not None}
    return {*_with_namespace(projects, change.key.name), *(Key("", name) for name in controllers if name)}


def _waiting(projects: Store[Object], shoot: Key) -> Iterator[Key]:
    for own, project in projects.by_index(BY_NAMESPACE, shoot.namespace):
        if is_deleting(project):
            yield own


def _controlling(change: Change[PresentRight | None]) -> set[Key]:
    return {Key("", each.project) for each in (change.old, change.new) if each is not None}
