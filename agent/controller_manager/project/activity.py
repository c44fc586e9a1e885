"""The controller `project-activity`: detects activity in changes, and writes its time into the Project's status.

    Shoots, BackupEntries                that come, go or change in their spec
    Secrets, WorkloadIdentities, Quotas  that bindings refer to: that come, go or change in anything but labels and
                                         finalizers, which this program writes by itself
    bindings of other namespaces         to one of them, that come or go: activity where the credentials or Quotas are

New objects count if they were created within the last hour: a list at the start of a watch is full of old objects. This
is the one controller that depends on changes, and not only on the present state. Activity while no process leads is
detected afterwards, as far as objects have been created.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
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
from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.context import Context
from gardener.api.garden import PROJECTS
from gardener.garden import users
from kube.clock import format_time, parse_time
from kube.objects import Key, Object, is_deleting, metadata, text
from kube.paths import at
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.loop import ControlLoop, EventHandler, enqueue, enqueue_mapped
from kube.runtime.predicates import all_of, changed, exists
from kube.runtime.status import StatusWriter

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
_FIELD = "lastActivityTimestamp"
_MOST = 10_000
"""Maximum number of namespaces with unrecorded activity. Some belong to no Project; the first ones are forgotten."""
_RECENT = timedelta(hours=1)
TOGETHER = timedelta(minutes=1)
"""Activity within this time is recorded once."""


class Rule(Protocol[T_contra]):
    def __call__(
        self, old: T_contra | None, new: T_contra | None, /, *, now: datetime, initial: bool
    ) -> datetime | None:
        """Time of the activity; None if there is none."""


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.project, context.garden
    loop = ControlLoop("project-activity", kind=PROJECTS, workers=settings.concurrent_syncs)
    # Watches do not wait for each other: activity in a namespace may be known before its Project.
    projects, moments = (
        loop.watch(garden.caches, PROJECTS_VIEW, enqueue(when=all_of(exists, changed(namespace_of_project)))),
        Moments(),
    )

    def noticed(rule: Rule[T], places: Callable[[Change[T]], Iterable[str]] = _own_namespace) -> EventHandler[T]:
        def used(change: Change[T]) -> list[Key]:
            moment = rule(change.old, change.new, now=context.clock(), initial=change.initial)
            if moment is None:
                return []
            namespaces = list(places(change))
            for namespace in namespaces:
                moments.add(namespace, moment)
            return [own for each in namespaces for own in projects.keys_by_index(BY_NAMESPACE, each)]

        # A change of the content of credentials is not visible in the cache.
        return enqueue_mapped(used, when=lambda _: True)

    for objects in (SHOOTS_VIEW, BACKUP_ENTRIES_VIEW):
        loop.watch(garden.caches, objects, noticed(of_objects))
    for credentials in (SECRETS_VIEW, WORKLOAD_IDENTITIES_VIEW):
        loop.watch(garden.caches, credentials, noticed(of_credentials))
    loop.watch(garden.caches, QUOTAS_VIEW, noticed(of_quotas))
    for bindings in (SECRET_BINDINGS_VIEW, CREDENTIALS_BINDINGS_VIEW):
        loop.watch(garden.caches, bindings, noticed(of_objects, _other_namespaces))
    return loop.reconciled_by(Reconciler(client=garden.client, projects=projects, moments=moments))


def _own_namespace(change: Change[Any]) -> tuple[str]:
    return (change.key.namespace,)


def _other_namespaces(change: Change[Object]) -> set[str]:
    """Other namespaces of the objects that a binding refers to."""
    found = (each for obj in (change.old, change.new) if obj is not None for each in users.of_binding(obj))
    return {each.namespace for each in found} - {change.key.namespace}


class Moments:
    """Times of the last activity in namespaces, until they are recorded: the Project of one may not be known yet."""

    def __init__(self) -> None:
        self._moments: dict[str, datetime] = {}

    def add(self, namespace: str, moment: datetime) -> None:
        self._moments[namespace] = max(moment, self._moments.get(namespace, moment))
        if len(self._moments) > _MOST:
            del self._moments[next(iter(self._moments))]

    def get(self, namespace: str) -> datetime | None:
        return self._moments.get(namespace)

    def recorded(self, namespace: str, moment: datetime) -> None:
        """Forget the moment, unless there is a later one."""
        if self._moments.get(namespace) == moment:
            del self._moments[namespace]


class Reconciler:
    def __init__(self, *, client: Client, projects: Store[Object], moments: Moments) -> None:
        self._projects = projects
        self._moments = moments
        self._status = StatusWriter(client, projects)

    async def reconcile(self, own: Key) -> Result:
        project = self._projects.get(own)
        if project is not None:
            for namespace in namespace_of_project(project):
                if (moment := self._moments.get(namespace)) is not None:
                    await self._record(project, moment)
                    self._moments.recorded(namespace, moment)
        return Done()

    async def _record(self, project: Object, moment: datetime) -> None:
        if not is_deleting(project) and is_news(text(at(project, "status", _FIELD)), moment):
            await self._status.update_if_exists(project, lambda status: {**status, _FIELD: format_time(moment)})


def of_objects(old: Object | None, new: Object | None, *, now: datetime, initial: bool) -> datetime | None:
    """Activity of Shoots, BackupEntries and bindings; `initial` as in `kube.runtime.cache.Change`."""
    if new is None:
        return now
    if old is None:
        return _coming(text(metadata(new).get("creationTimestamp")), now, initial=initial)
    return now if metadata(old).get("generation") != metadata(new).get("generation") else None


def of_credentials(
    old: Credentials | None, new: Credentials | None, *, now: datetime, initial: bool
) -> datetime | None:
    """Activity of Secrets and WorkloadIdentities."""
    if not any(each is not None and each.were_referred_to for each in (old, new)):
        return None
    if new is None:
        return now
    if old is None:
        return _coming(new.created, now, initial=initial)
    # The content is not cached: a reported change without visible differences is one of the content.
    is_own = initial or (old.labels, old.finalizers) != (new.labels, new.finalizers)
    return None if is_own else now


def of_quotas(old: Object | None, new: Object | None, *, now: datetime, initial: bool) -> datetime | None:
    before, after = (None if each is None else Credentials.of(each) for each in (old, new))
    return of_credentials(before, after, now=now, initial=initial)


def _coming(created: str, now: datetime, *, initial: bool) -> datetime | None:
    """Time of a new object; a listed one may have come while no process watched, so its creation counts."""
    moment = parse_time(created) if created else now
    if now - moment > _RECENT:
        return None
    return moment if initial else now


def is_news(recorded: str, moment: datetime) -> bool:
    return not recorded or moment - parse_time(recorded) >= TOGETHER
