"""The controller `project-stale`: a pass per sync period, and at times that change a decision.

    Projects     that come, are used, get another namespace, or have a spec that was not reconciled yet
    Namespaces   that come, or are exempted from the check

                     minimum lifetime        grace          expiration, from `since` on
        created or ------------------> stale ------> `auto` ---------------------------> deleted
        last activity                  `since`

A Project in use is not stale, at any age. The time of deletion, once written, never moves closer. Users of a Project
are watched, but lead to no pass: `project-activity` writes their activity into the status of the Project.

A decision to delete is repeated just before the deletion, with the Project, its namespace and all possible users read
from the API server. In a dry run, changes are only logged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from agent.controller_manager.common.api import (
    BACKUP_ENTRIES_VIEW,
    BY_CREDENTIALS_BINDING,
    BY_NAMESPACE,
    BY_QUOTA,
    BY_SECRET,
    BY_SECRET_BINDING,
    BY_WORKLOAD_IDENTITY,
    CREDENTIALS_BINDINGS_VIEW,
    NAMESPACES_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SECRETS_VIEW,
    SHOOTS_VIEW,
    WORKLOAD_IDENTITIES_VIEW,
)
from agent.controller_manager.common.confirmed_deletion import delete_confirmed
from agent.controller_manager.common.rules.credentials import Credentials
from agent.controller_manager.context import Context
from config.controller_manager.controllers import Project
from gardener import keys
from gardener.api.garden import PROJECTS
from gardener.garden import users
from kube.clock import format_time, parse_time
from kube.objects import Key, Object, annotations, is_deleting, is_truthy, mapping, metadata, spec, text
from kube.paths import at
from kube.resources import NAMESPACES
from kube.runtime import cache
from kube.runtime.cache import Caches, Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, any_of, changed, exists, listed
from kube.runtime.status import StatusWriter

SINCE, AUTO_DELETE, LAST_ACTIVITY = "staleSinceTimestamp", "staleAutoDeleteTimestamp", "lastActivityTimestamp"
_NOT_CREDENTIALS = frozenset({"kubeconfig", "monitoring", "ssh-keypair"})
"""Roles of Secrets."""
_times = (f"status.{field}" for field in (LAST_ACTIVITY, SINCE, AUTO_DELETE))

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    since: str = ""
    """Time in the format of the status, RFC 3339; empty for none."""
    auto_delete: str = ""
    deletes: bool = False
    due: datetime | None = None
    """Next time at which the decision may change without other changes; None if never."""

    def apply(self, status: Object) -> Object:
        return {**status, SINCE: self.since or None, AUTO_DELETE: self.auto_delete or None}


def protected_until(project: Object, settings: Project) -> datetime:
    """Time until which the Project is not stale, used or not."""
    last = at(project, "status", LAST_ACTIVITY)
    moments = [parse_time(each) for each in (text(metadata(project).get("creationTimestamp")), text(last)) if each]
    return max(moments) + timedelta(days=settings.minimum_lifetime_days)


def is_exempt(namespace: Object) -> bool:
    return is_truthy(annotations(namespace).get(keys.SKIP_STALE_CHECK))


def decide(project: Object, settings: Project, *, is_kept: bool, now: datetime) -> Decision:
    """Decide about a Project; `is_kept` if it is used, or exempt."""
    until = protected_until(project, settings)
    if until > now:
        return Decision(due=until)
    if is_kept:
        return Decision()
    since = text(at(project, "status", SINCE)) or format_time(now)
    grace_ends = parse_time(since) + timedelta(days=settings.stale_grace_period_days)
    if grace_ends > now:
        return Decision(since=since, due=grace_ends)
    expires = parse_time(since) + timedelta(days=settings.stale_expiration_time_days)
    stored = text(at(project, "status", AUTO_DELETE))
    auto_delete = stored if stored and parse_time(stored) >= expires else format_time(expires)
    ends = parse_time(auto_delete)
    return Decision(since=since, auto_delete=auto_delete, deletes=ends <= now, due=ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Objects of a Project in use, including uses from other Projects.

    Shoots and BackupEntries count in its namespace; Secrets, WorkloadIdentities and Quotas in its namespace count if a
    binding of any namespace names them which a Shoot uses.
    """

    shoots: Store[Object]
    backup_entries: Store[Object]
    secrets: Store[Credentials]
    workload_identities: Store[Credentials]
    quotas: Store[Object]
    secret_bindings: Store[Object]
    credentials_bindings: Store[Object]

    @classmethod
    def watched(cls, loop: ControlLoop, caches: Caches) -> "Usage":
        return cls(
            shoots=loop.watch(caches, SHOOTS_VIEW),
            backup_entries=loop.watch(caches, BACKUP_ENTRIES_VIEW),
            secrets=loop.watch(caches, SECRETS_VIEW),
            workload_identities=loop.watch(caches, WORKLOAD_IDENTITIES_VIEW),
            quotas=loop.watch(caches, QUOTAS_VIEW),
            secret_bindings=loop.watch(caches, SECRET_BINDINGS_VIEW),
            credentials_bindings=loop.watch(caches, CREDENTIALS_BINDINGS_VIEW),
        )

    @classmethod
    async def read(cls, client: Client, namespace: str) -> "Usage":
        """Read the usage of one namespace from the API server.

        Raises:
            KubeError: the usage is unknown.
        """
        secret_bindings = await cache.listed(client, SECRET_BINDINGS_VIEW)
        credentials_bindings = await cache.listed(client, CREDENTIALS_BINDINGS_VIEW)
        places = {namespace, *_referring(secret_bindings, namespace), *_referring(credentials_bindings, namespace)}
        return cls(
            shoots=await cache.listed(client, SHOOTS_VIEW, *sorted(places)),
            backup_entries=await cache.listed(client, BACKUP_ENTRIES_VIEW, namespace),
            secrets=await cache.listed(client, SECRETS_VIEW, namespace),
            workload_identities=await cache.listed(client, WORKLOAD_IDENTITIES_VIEW, namespace),
            quotas=await cache.listed(client, QUOTAS_VIEW, namespace),
            secret_bindings=secret_bindings,
            credentials_bindings=credentials_bindings,
        )

    def of(self, namespace: str) -> str:
        """Name one object of the namespace in use; empty if there is none."""
        return next(self._used(namespace), "")

    def _used(self, namespace: str) -> Iterator[str]:
        for store in (self.shoots, self.backup_entries):
            for own in store.keys_by_index(BY_NAMESPACE, namespace):
                yield f"{store.view.resource.kind} {own}"
        by_secret_bindings = (self.secret_bindings, BY_SECRET_BINDING)
        by_credentials_bindings = (self.credentials_bindings, BY_CREDENTIALS_BINDING)
        for own, secret in self.secrets.by_index(BY_NAMESPACE, namespace):
            if secret.role in _NOT_CREDENTIALS:
                continue
            for label, by in (
                (keys.SECRET_BINDING_REFERENCE, by_secret_bindings),
                (keys.CREDENTIALS_BINDING_REFERENCE, by_credentials_bindings),
            ):
                if secret.labels.get(label) == "true" and self._is_bound(BY_SECRET, own, *by):
                    yield f"Secret {own}"
        for own in self.workload_identities.keys_by_index(BY_NAMESPACE, namespace):
            if self._is_bound(BY_WORKLOAD_IDENTITY, own, *by_credentials_bindings):
                yield f"WorkloadIdentity {own}"
        for own in self.quotas.keys_by_index(BY_NAMESPACE, namespace):
            if any(self._is_bound(BY_QUOTA, own, *by) for by in (by_secret_bindings, by_credentials_bindings)):
                yield f"Quota {own}"

    def _is_bound(self, index: str, own: Key, bindings: Store[Object], users_of_binding: str) -> bool:
        """Whether a Shoot uses a binding that names the object."""
        return any(self.shoots.count(users_of_binding, each) for each in bindings.keys_by_index(index, own))


def _referring(bindings: Store[Object], namespace: str) -> Iterator[str]:
    """Namespaces of bindings that name an object in this one."""
    for own, binding in bindings.items():
        if any(each.namespace == namespace for each in users.of_binding(binding)):
            yield own.namespace


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
        clock=context.deletion_clock,
        dry_run=context.dry_run,
    )
    return loop.reconciled_by(reconciler)


def _is_observed(project: Object) -> bool:
    return bool(at(project, "status", "observedGeneration") == metadata(project).get("generation"))


_triggers: Predicate[Object] = all_of(exists, any_of(listed, changed("spec.namespace", _is_observed, *_times)))


def _of_namespace(projects: Store[Object], change: Change[Object]) -> list[Key]:
    return projects.keys_by_index(BY_NAMESPACE, change.key.name)


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
            return Done()  # its creation leads to a pass
        decision = self._decide(project, namespace, self._usage)
        _log(project, decision, dry_run=self._dry_run)
        if not self._dry_run:
            updated = await self._status.update_if_exists(project, decision.apply)
            if updated is None:
                return Done()
            project = updated
            if decision.deletes:
                await self._delete(project)
        return RequeueAfter(self._seconds_until(decision))

    def _decide(self, project: Object, namespace: Object, usage: Usage) -> Decision:
        is_kept = is_exempt(namespace) or bool(usage.of(_namespace_of(project)))
        return decide(project, self._settings, is_kept=is_kept, now=self._clock())

    async def _delete(self, project: Object) -> None:
        """Delete the Project if it still is stale."""
        if await delete_confirmed(self._client, PROJECTS, project, now=self._clock(), is_due=self._is_due):
            log.info("Deleted a stale Project")

    async def _is_due(self, live: Object) -> bool:
        name = _namespace_of(live)
        namespace = await self._client.find(NAMESPACES, name) if name else None
        return namespace is not None and self._decide(live, namespace, await Usage.read(self._client, name)).deletes

    def _seconds_until(self, decision: Decision) -> float:
        """Seconds until the next pass: when time changes the decision, but not much later than in a sync period."""
        if decision.due is None or decision.deletes:
            return self._settings.stale_sync_period
        remaining = (decision.due - self._clock()).total_seconds()
        return min(max(remaining, 0.0), self._settings.stale_sync_period)


def _namespace_of(project: Object) -> str:
    return text(spec(project).get("namespace"))


def _log(project: Object, decision: Decision, *, dry_run: bool) -> None:
    """Log changes of the decision."""
    status, times = mapping(project.get("status")), {"since": decision.since, "deletedAt": decision.auto_delete}
    if decision.deletes and dry_run:
        log.info("Dry run: would delete a stale Project", **times)
    elif (text(status.get(SINCE)), text(status.get(AUTO_DELETE))) != (decision.since, decision.auto_delete):
        mark = "would be marked" if dry_run else "is marked"
        log.info(f"A Project {mark} as stale" if decision.since else f"A Project {mark} as used again", **times)
