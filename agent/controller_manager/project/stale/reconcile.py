"""One pass over a Project: whether it is stale, since when, and whether its time has come.

What is decided from caches is decided anew, just before the Project is deleted, from what the API server says: the
Project, its namespace, and all that may use it. In a dry run, what would be done is only logged.
"""

from collections.abc import Callable
from datetime import datetime

import structlog

from agent.controller_manager.common.confirmed_deletion import delete_confirmed
from agent.controller_manager.project.stale.rules import AUTO_DELETE, SINCE, Decision, decide, is_exempt
from agent.controller_manager.project.stale.usage import Usage
from config.controller_manager.controllers import Project
from gardener.api.garden import PROJECTS
from kube.errors import NotFound
from kube.objects import Key, Object, is_deleting, mapping, spec, text
from kube.resources import NAMESPACES
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Reconciler:
    def __init__(
        self,
        *,
        client: Client,
        projects: Store[Object],
        namespaces: Store[Object],
        usage: Usage,
        settings: Project,
        clock: Callable[[], datetime],
        dry_run: bool,
    ) -> None:
        self._client = client
        self._projects = projects
        self._namespaces = namespaces
        self._usage = usage
        self._settings = settings
        self._clock = clock
        self._dry_run = dry_run
        self._status = StatusWriter(client, projects)

    async def reconcile(self, own: Key) -> Result:
        project = self._projects.get(own)
        if project is None or is_deleting(project):
            return Done()
        name = _namespace_of(project)
        namespace = self._namespaces.get(Key("", name)) if name else None
        if namespace is None:
            return Done()  # its coming leads to a pass
        decision = self._decide(project, namespace, self._usage)
        _log(project, decision, dry_run=self._dry_run)
        if not self._dry_run:
            try:
                project = await self._status.update(project, decision.apply)
            except NotFound:
                return Done()
            if decision.deletes:
                await self._delete(project)
        return RequeueAfter(self._seconds_until(decision))

    def _decide(self, project: Object, namespace: Object, usage: Usage) -> Decision:
        is_kept = is_exempt(namespace) or bool(usage.of(_namespace_of(project)))
        return decide(project, self._settings, is_kept=is_kept, now=self._clock())

    async def _delete(self, project: Object) -> None:
        """Raises KubeError."""
        if await delete_confirmed(self._client, PROJECTS, project, now=self._clock(), is_due=self._is_due):
            log.info("A stale Project is deleted")

    async def _is_due(self, live: Object) -> bool:
        name = _namespace_of(live)
        namespace = await self._client.find(NAMESPACES, name) if name else None
        return namespace is not None and self._decide(live, namespace, await Usage.read(self._client, name)).deletes

    def _seconds_until(self, decision: Decision) -> float:
        """Its next look: when time alone makes a difference, but not much later than in a sync period."""
        if decision.due is None or decision.deletes:
            return self._settings.stale_sync_period
        remaining = (decision.due - self._clock()).total_seconds()
        return min(max(remaining, 0.0), self._settings.stale_sync_period)


def _namespace_of(project: Object) -> str:
    return text(spec(project).get("namespace"))


def _log(project: Object, decision: Decision, *, dry_run: bool) -> None:
    """What is new."""
    status, times = mapping(project.get("status")), {"since": decision.since, "deletedAt": decision.auto_delete}
    if decision.deletes and dry_run:
        log.info("A stale Project would be deleted", **times)
    elif (text(status.get(SINCE)), text(status.get(AUTO_DELETE))) != (decision.since, decision.auto_delete):
        mark = "would be marked" if dry_run else "is marked"
        log.info(f"A Project {mark} as stale" if decision.since else f"A Project {mark} as used again", **times)
