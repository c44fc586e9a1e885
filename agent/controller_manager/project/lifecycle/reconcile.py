"""One pass over a Project: its namespace, its quota and the rights in it; or, if it is deleted, its end.

Each pass covers all of it, so it makes no difference after which write a former one ended: created objects are
recognized by their names and by the uid of the Project that they carry. A namespace is only deleted if it carries it,
and if it has no Shoots in the API server. All objects that the Project owns go with it, so its finalizer is not removed
before the API server confirms that the namespace is not among them.

Problems that cannot be repaired lead to an Event and the phase `Failed`; a conflict with another writer leads to
neither.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from agent.controller_manager.common.api import BY_NAMESPACE
from agent.controller_manager.project.lifecycle import quota
from agent.controller_manager.project.lifecycle.namespace import (
    RELEASED,
    WAITING,
    namespace_of,
    new_namespace,
    problem,
    release,
    taking,
)
from agent.controller_manager.project.lifecycle.rbac import PresentRight
from agent.controller_manager.project.lifecycle.rights import Rights
from config.controller_manager.controllers import QuotaConfiguration
from gardener.api.garden import PROJECTS, SHOOTS
from gardener.garden import users
from gardener.keys import GARDENER_FINALIZER
from kube.errors import Conflict, KubeError, NotFound, refusal_of
from kube.objects import Key, Object, finalizers, is_deleting, key, metadata, spec, text, uid
from kube.paths import at
from kube.repeats import Repeats
from kube.resources import NAMESPACES, RESOURCE_QUOTAS, Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client, Form, Selection
from kube.runtime.controller import Done, ReconcileError, Result, TerminalError, failure_of, is_conflict
from kube.runtime.events import EventRecorder, EventType
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import StatusWriter

PENDING, READY, FAILED, TERMINATING = "Pending", "Ready", "Failed", "Terminating"
REPORTER = "project-controller"
RECONCILED = "NamespaceReconcileSuccessful"
RECONCILE_FAILED = "NamespaceReconcileFailed"
NOT_EMPTY = "NamespaceNotEmpty"
MARKED_FOR_DELETION = "NamespaceMarkedForDeletion"
DELETION_FAILED = "NamespaceDeletionFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStores:
    """Caches of Projects and the objects created for them."""

    projects: Store[Object]
    namespaces: Store[Object]
    quotas: Store[Object]
    shoots: Store[Object]
    rights: Mapping[Resource, Store[PresentRight | None]]


class Events:
    """Events about Projects."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._warned: Repeats[tuple[str, str]] = Repeats()

    def report(self, project: Object, reason: str, message: str) -> None:
        self._write(project, "Normal", reason, message)

    def warn(self, project: Object, reason: str, messages: Iterable[str]) -> None:
        """Record warnings that the previous pass did not record."""
        for new in sorted(self._warned.news(key(project), ((reason, message) for message in messages))):
            self._write(project, "Warning", *new)

    def forget(self, own: Key) -> None:
        """Forget the warnings of a Project that is correct or gone."""
        self._warned.forget(own)

    def _write(self, project: Object, type_: EventType, reason: str, message: str) -> None:
        self._recorder.event(project, type_, reason, message, reporter=REPORTER)


class Reconciler:
    def __init__(
        self, *, client: Client, stores: ProjectStores, events: Events, quotas: Sequence[QuotaConfiguration]
    ) -> None:
        self._client = client
        self._stores = stores
        self._events = events
        self._quotas = quotas
        self._rights = Rights(client=client, stores=stores.rights)
        self._status = StatusWriter(client, stores.projects)

    async def reconcile(self, own: Key) -> Result:
        """Set up or end a Project.

        Raises:
            TerminalError: the namespace has to be changed first; other errors are retried.
        """
        project = self._stores.projects.get(own)
        if project is None or (is_deleting(project) and GARDENER_FINALIZER not in finalizers(project)):
            self._events.forget(own)
        elif is_deleting(project):
            await self._end(project)
        else:
            await self._set_up(project)
        return Done()

    # --- setting up

    async def _set_up(self, project: Object) -> None:
        project = await ensure_finalizer(self._client, PROJECTS, project, GARDENER_FINALIZER)
        self._stores.projects.observe(project)
        if not at(project, "status", "phase"):
            project = await self._write_phase(project, PENDING)
        name = namespace_of(project)
        try:
            is_reported = await self._ensure_namespace(project)
            project = await self._name_namespace(project)
        except (KubeError, ReconcileError) as error:
            await self._fail(project, RECONCILE_FAILED, [error])
        success = f'Successfully reconciled namespace "{name}" for project'
        if is_reported:
            self._events.report(project, RECONCILED, success)
        outcomes = [
            await _attempt("Error while setting up ResourceQuota", self._ensure_quota, project, name),
            await _attempt(
                f'Error while reconciling RBAC resources for namespace "{name}"', self._rights.ensure, project, name
            ),
            await _attempt(
                "Error while deleting stale RBAC rules for extension roles", self._rights.remove_stale, project, name
            ),
        ]
        errors = [outcome for outcome in outcomes if outcome is not None]
        if errors:
            await self._fail(project, RECONCILE_FAILED, errors)
        if not is_reported and at(project, "status", "phase") != READY:
            self._events.report(project, RECONCILED, success)
        self._events.forget(key(project))
        await self._write_phase(project, READY)

    async def _ensure_namespace(self, project: Object) -> bool:
        """Create or change the namespace, and return whether anything was written."""
        name = namespace_of(project)
        namespace = self._stores.namespaces.get(Key("", name))
        if namespace is None:
            if created := await self._client.create_if_missing(NAMESPACES, new_namespace(project)):
                self._stores.namespaces.observe(created)
                return True
            namespace = await self._client.get(NAMESPACES, name)
        if why := problem(namespace, project):
            raise TerminalError(why)  # namespaces are watched
        return await self._change_namespace(namespace, taking(namespace, project))

    async def _change_namespace(self, namespace: Object, change: Object) -> bool:
        if change:
            meta = {**change, "resourceVersion": metadata(namespace)["resourceVersion"]}
            written = await self._client.patch(NAMESPACES, key(namespace).name, {"metadata": meta})
            self._stores.namespaces.observe(written)
        return bool(change)

    async def _name_namespace(self, project: Object) -> Object:
        if text(spec(project).get("namespace")):
            return project
        meta = {"resourceVersion": metadata(project)["resourceVersion"]}
        body = {"metadata": meta, "spec": {"namespace": namespace_of(project)}}
        written = await self._client.patch(PROJECTS, key(project).name, body)
        self._stores.projects.observe(written)
        return written

    async def _ensure_quota(self, project: Object, namespace: str) -> None:
        config = quota.configured(self._quotas, project)
        if config is None:
            return
        own, store = Key(namespace, quota.NAME), self._stores.quotas
        present = store.get(own)
        if present is None:
            new = quota.new_quota(config, project, namespace)
            if created := await self._client.create_if_missing(RESOURCE_QUOTAS, new):
                store.observe(created)
                return
            present = await self._client.get(RESOURCE_QUOTAS, own)
        if change := quota.change_of(present, config, project):
            version = metadata(present).get("resourceVersion") or str(store.version(own))
            body = {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": version}}
            store.observe(await self._client.patch(RESOURCE_QUOTAS, own, body))

    # --- the end

    async def _end(self, project: Object) -> None:
        name = text(spec(project).get("namespace"))
        try:
            is_free = not name or await self._free(project, name)
        except Conflict:
            raise
        except KubeError as error:
            why = f'Failed to release project namespace "{name}": {error}'
            await self._fail(project, DELETION_FAILED, [ReconcileError(why)])
        if is_free:
            # What was made for the Project goes with it, by its owner references.
            written = await remove_finalizer(self._client, PROJECTS, project, GARDENER_FINALIZER)
            if written is not None:
                self._stores.projects.observe(written)

    async def _free(self, project: Object, name: str) -> bool:
        """Whether the namespace does not hold the Project any more; anything that does is watched."""
        namespace = self._stores.namespaces.get(Key("", name))
        step = release(namespace, project)
        if step is RELEASED:  # it may have been taken a moment ago
            namespace = await self._client.find(NAMESPACES, name)
            step = release(namespace, project)
        if shoots := await self._shoots_in(name, asks=step is not WAITING):
            why = f'Cannot release namespace "{name}" because it still contains Shoots: {users.listed(shoots)}'
            self._events.warn(project, NOT_EMPTY, [why])
        elif step.is_done:
            with suppress(NotFound):
                await self._change_namespace(namespace or {}, step.change)
            return True
        else:
            if step.deletes and namespace is not None:
                await self._client.delete_if_exists(NAMESPACES, name, uid=uid(namespace))
            if step.deletes or at(project, "status", "phase") != TERMINATING:
                message = f'Successfully marked project namespace "{name}" for deletion'
                self._events.report(project, MARKED_FOR_DELETION, message)
        await self._write_phase(project, TERMINATING)
        return False

    async def _shoots_in(self, namespace: str, *, asks: bool) -> list[Key]:
        """Shoots in the namespace; if none are cached, listed from the API server on request."""
        known = self._stores.shoots.keys_by_index(BY_NAMESPACE, namespace)
        if known or not asks:
            return known
        found = await self._client.list(SHOOTS, Selection(namespace=namespace), form=Form.METADATA)
        return sorted(map(key, found))

    # --- what came of it

    async def _write_phase(self, project: Object, phase: str) -> Object:
        generation = metadata(project).get("generation")

        def observed(status: Object) -> Object:
            return {**status, "phase": phase, "observedGeneration": generation}

        # Another client may have removed the finalizer.
        return await self._status.update_if_exists(project, observed) or project

    async def _fail(self, project: Object, reason: str, errors: Sequence[Exception]) -> NoReturn:
        serious = [error for error in errors if not is_conflict(error)]
        if serious:
            self._events.warn(project, reason, map(refusal_of, serious))
            await self._write_phase(project, FAILED)
        raise ExceptionGroup("the Project could not be reconciled completely", errors) if errors[1:] else errors[0]


async def _attempt(
    what: str, work: Callable[[Object, str], Awaitable[None]], project: Object, namespace: str
) -> Exception | None:
    """Return the failure; errors of this program are raised."""
    try:
        await work(project, namespace)
    except Exception as error:
        failure = failure_of(error)
        if failure.is_panic:
            raise
        return error if failure.is_conflict else ReconcileError(f"{what}: {failure.text}")
    return None
