"""Records when a Project was used last; how that is noticed is in `controller`."""

from contextlib import suppress
from datetime import datetime

from agent.controller_manager.project.activity.rules import is_news
from gardener.garden.resources import PROJECTS
from kube.cache import Store
from kube.client import Client
from kube.clock import format_time
from kube.controller import Done, Result
from kube.errors import NotFound
from kube.objects import Key, Object, is_deleting, text
from kube.paths import at
from kube.status import StatusWriter

_FIELD = "lastActivityTimestamp"


class Moments:
    """Of the last activity in Projects, until they are recorded."""

    def __init__(self) -> None:
        self._moments: dict[Key, datetime] = {}

    def add(self, project: Key, moment: datetime) -> None:
        self._moments[project] = max(moment, self._moments.get(project, moment))

    def get(self, project: Key) -> datetime | None:
        return self._moments.get(project)

    def recorded(self, project: Key, moment: datetime) -> None:
        """There may have been a later one since."""
        if self._moments.get(project) == moment:
            del self._moments[project]


class Reconciler:
    def __init__(self, *, client: Client, projects: Store[Object], moments: Moments) -> None:
        self._projects = projects
        self._moments = moments
        self._status = StatusWriter(client, projects, PROJECTS)

    async def reconcile(self, own: Key) -> Result:
        moment, project = self._moments.get(own), self._projects.get(own)
        if moment is None:
            return Done()
        if project is not None and not is_deleting(project) and is_news(text(at(project, "status", _FIELD)), moment):
            with suppress(NotFound):
                await self._status.update(project, lambda status: {**status, _FIELD: format_time(moment)})
        self._moments.recorded(own, moment)
        return Done()
