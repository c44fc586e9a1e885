"""Records when a Project was used last; how that is noticed is in `controller`."""

from contextlib import suppress
from datetime import datetime

from agent.controller_manager.common.api import namespace_of_project
from agent.controller_manager.project.activity.rules import is_news
from kube.clock import format_time
from kube.errors import NotFound
from kube.objects import Key, Object, is_deleting, text
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, Result
from kube.runtime.status import StatusWriter

_FIELD = "lastActivityTimestamp"
_MOST = 10_000
"""Namespaces with activity that is not recorded. Some belong to no Project; those that wait longest are forgotten."""


class Moments:
    """Of the last activity in namespaces, until they are recorded: that of a Project may not be known to be one yet."""

    def __init__(self) -> None:
        self._moments: dict[str, datetime] = {}

    def add(self, namespace: str, moment: datetime) -> None:
        self._moments[namespace] = max(moment, self._moments.get(namespace, moment))
        if len(self._moments) > _MOST:
            del self._moments[next(iter(self._moments))]

    def get(self, namespace: str) -> datetime | None:
        return self._moments.get(namespace)

    def recorded(self, namespace: str, moment: datetime) -> None:
        """There may have been a later one since."""
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
            with suppress(NotFound):
                await self._status.update(project, lambda status: {**status, _FIELD: format_time(moment)})
