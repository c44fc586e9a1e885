"""The controller `project-activity`: what is used is noticed in changes, and leads to a pass over the Project.

    Shoots, BackupEntries                that come, go or change
    Secrets, WorkloadIdentities, Quotas  that bindings refer to, the same
    bindings of other namespaces         to one of them, that come or go

This is the one controller to which it matters what has changed, and not only what there is. What happens while
no process leads is noticed afterwards, as far as objects have come.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Protocol, TypeVar

from agent.controller_manager.common.api import (
    BACKUP_ENTRIES_VIEW,
    BY_NAMESPACE,
    CREDENTIALS_BINDINGS_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SECRETS_VIEW,
    SHOOTS_VIEW,
    WORKLOAD_IDENTITIES_VIEW,
    namespace_of_project,
)
from agent.controller_manager.context import Context
from agent.controller_manager.project.activity.reconcile import Moments, Reconciler
from agent.controller_manager.project.activity.rules import of_credentials, of_objects, of_quotas
from gardener.api.garden import PROJECTS
from gardener.garden import users
from kube.objects import Key, Object
from kube.runtime.cache import Change
from kube.runtime.loop import ControlLoop, EventHandler, enqueue, enqueue_mapped

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Rule(Protocol[T_contra]):
    def __call__(
        self, old: T_contra | None, new: T_contra | None, /, *, now: datetime, initial: bool
    ) -> datetime | None:
        """The moment of activity; None: it is none."""


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.project, context.garden
    loop = ControlLoop("project-activity", kind=PROJECTS, workers=settings.concurrent_syncs)
    projects, moments = loop.watch(garden.caches, PROJECTS_VIEW, enqueue(when=_takes_namespace)), Moments()

    def noticed(rule: Rule[T], places: Callable[[Change[T]], Iterable[str]] = _own_namespace) -> EventHandler[T]:
        def used(change: Change[T]) -> list[Key]:
            moment = rule(change.old, change.new, now=context.clock(), initial=change.initial)
            if moment is None:
                return []
            namespaces = list(places(change))
            for namespace in namespaces:
                moments.add(namespace, moment)
            return [own for each in namespaces for own in projects.keys_by_index(BY_NAMESPACE, each)]

        # Of credentials, a change of the content is not to be seen in what is kept.
        return enqueue_mapped(used, when=lambda _: True)

    for objects in (SHOOTS_VIEW, BACKUP_ENTRIES_VIEW):
        loop.watch(garden.caches, objects, noticed(of_objects))
    for credentials in (SECRETS_VIEW, WORKLOAD_IDENTITIES_VIEW):
        loop.watch(garden.caches, credentials, noticed(of_credentials))
    loop.watch(garden.caches, QUOTAS_VIEW, noticed(of_quotas))
    for bindings in (SECRET_BINDINGS_VIEW, CREDENTIALS_BINDINGS_VIEW):
        loop.watch(garden.caches, bindings, noticed(of_objects, _other_namespaces))
    return loop.reconciled_by(Reconciler(client=garden.client, projects=projects, moments=moments))


def _takes_namespace(change: Change[Object]) -> bool:
    """What is used in it may have been heard of before: watches do not wait for each other."""
    return change.new is not None and namespace_of_project(change.old or {}) != namespace_of_project(change.new)


def _own_namespace(change: Change[Any]) -> tuple[str]:
    return (change.key.namespace,)


def _other_namespaces(change: Change[Object]) -> set[str]:
    """Of what a binding refers to."""
    found = (each for obj in (change.old, change.new) if obj is not None for each in users.of_binding(obj))
    return {each.namespace for each in found} - {change.key.namespace}
