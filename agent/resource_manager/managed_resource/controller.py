"""The ManagedResource controller: its watches, and the ManagedResources that an event enqueues.

source   ManagedResources    see `triggers`; those that wait for it (`dependencies`)
         Secrets             those that refer to it
target   managed objects     the origin of the object, if the object has been changed
         CustomResourceDefinitions (by `kinds_changed`)   those that wait for a kind, to apply or to remove objects
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import structlog

from agent.resource_manager.common.inputs import Inputs
from agent.resource_manager.common.views import BY_SECRET
from agent.resource_manager.context import Context
from agent.resource_manager.managed_resource.dependencies import Dependencies
from agent.resource_manager.managed_resource.execution import Executor
from agent.resource_manager.managed_resource.history import History
from agent.resource_manager.managed_resource.ownership import Ownership
from agent.resource_manager.managed_resource.plans import Plans
from agent.resource_manager.managed_resource.reconcile import Reconciler
from agent.resource_manager.managed_resource.record import Record
from agent.resource_manager.managed_resource.report import Reporter
from agent.resource_manager.managed_resource.rules.permissions import restriction_of
from agent.resource_manager.managed_resource.source import SecretVersion, Source
from agent.resource_manager.managed_resource.triggers import first_priority, is_applied, needs_reconcile
from config.resource_manager.controllers import ManagedResource
from gardener import keys
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.managed_resource import jobs
from gardener.responsibility import Origin, belongs_to_class, finalizer_of, is_ignored, parse_origin
from kube.apply.kinds import ManagedKinds
from kube.apply.live_objects import LiveObjects
from kube.objects import Key, Object, is_deleting
from kube.resources import JOBS
from kube.runtime.cache import Change
from kube.runtime.fan_out import FanOut
from kube.runtime.loop import ControlLoop
from kube.runtime.priorities import CHANGE, REMOVAL, Priority
from kube.runtime.status import StatusWriter

_SERVED_SOON = 0.1
_STATUS_SECONDS = 60.0
"""Seconds that a pass may take beyond its time limit to report its result."""


class ManagedResourceLoop:
    """See the module; `context` has the clusters and the configuration."""

    def __init__(self, context: Context, *, source: Source, kinds: ManagedKinds, status: StatusWriter) -> None:
        settings = context.config.controllers.managed_resource
        self._class = context.config.controllers.resource_class
        self._cluster_id = context.cluster_id
        self._source = source
        self._inputs = Inputs()
        self._secrets: FanOut[Key, SecretVersion] = FanOut(
            lambda secret, _: source.managed_resources.keys_by_index(BY_SECRET, secret), self._secret_has_changed
        )
        self._unsubscribe: Callable[[], None] = lambda: None
        self._kinds = kinds
        self._live = self._live_objects(context)
        self._plans = Plans(
            source=source,
            discovery=context.target.discovery,
            managed_by=settings.managed_by_label_value,
            only_workloads=settings.inject_labels_only_into_workloads,
            restriction=partial(restriction_of, settings.restrictions),
        )
        self._ownership = Ownership(
            source=source,
            plans=self._plans,
            restrictions=settings.restrictions,
            resource_class=self._class,
            cluster_id=context.cluster_id,
            is_one_cluster=context.source.transport.host == context.target.transport.host,
            enqueue=self._enqueue,
        )
        self._dependencies = Dependencies(
            source=source,
            plans=self._plans,
            restrictions=settings.restrictions,
            resource_class=self._class,
            enqueue=self._enqueue,
        )
        record = Record(
            client=source.client,
            store=source.managed_resources,
            status=status,
            finalizer=finalizer_of(self._class),
            retry=lambda name: self._enqueue((name,)),
        )
        self._executor = Executor.of(
            context,
            live=self._live,
            ownership=self._ownership,
            dependencies=self._dependencies,
            record=record,
            inputs=self._inputs,
        )
        self._reporter = self._reports(context, record)
        self.loop = self._control_loop(settings, record)
        self._log = structlog.get_logger()

    def _live_objects(self, context: Context) -> LiveObjects:
        return LiveObjects(
            client=context.target.client,
            discovery=context.target.discovery,
            kinds=self._kinds,
            origin=keys.ORIGIN,
            marks=(keys.KEEP_OBJECT, keys.FINALIZE_DELETION_AFTER, keys.CLAIMED_BY, keys.GARBAGE_COLLECTABLE),
            on_change=self._object_changed,
        )

    def _reports(self, context: Context, record: Record) -> Reporter:
        settings = context.config.controllers.managed_resource
        versions = History(
            source=self._source, caches=context.source.caches, recorder=context.recorder, limit=settings.history_limit
        )
        return Reporter(
            record,
            context.recorder,
            context.changes,
            versions=versions,
            sync_period=settings.sync_period,
            inputs=self._inputs,
        )

    def _control_loop(self, settings: ManagedResource, record: Record) -> ControlLoop:
        loop = ControlLoop(
            "managedresource",
            kind=MANAGED_RESOURCES,
            workers=settings.concurrent_syncs,
            time_limit=self._executor.time_limit + _STATUS_SECONDS,
            # A repair of its environment by a user must take effect within the time of a regular pass.
            max_backoff=settings.sync_period,
            highest=self._highest_priority,
            is_repeatable=True,
        )
        loop.on_start(self._start)
        loop.on_kinds_changed(self._kinds_changed)
        loop.on_close(self._close)
        loop.reconciled_by(
            Reconciler(
                resource_class=self._class,
                record=record,
                plans=self._plans,
                ownership=self._ownership,
                dependencies=self._dependencies,
                executor=self._executor,
                reporter=self._reporter,
            )
        )
        return loop

    async def _start(self) -> None:
        await self._source.synced()
        for name, managed_resource in self.managed_resources():
            for job in jobs.finished(managed_resource, origin=str(Origin(name, self._cluster_id))):
                self._live.presume_finished(JOBS, job)
        self._unsubscribe = self._source.subscribe(
            managed_resource=self._managed_resource_changed, secret=self._secret_changed
        )

    async def _close(self) -> None:
        self._unsubscribe()
        await self._ownership.close()
        await self._reporter.close()
        await self._executor.close()
        await self._kinds.close()

    def _kinds_changed(self, group: str) -> None:
        """Handle new, changed or deleted kinds of a group."""
        self._inputs.all_changed()
        waiting = self._executor.kinds_changed(group)
        for name in {*self._plans.with_objects_of(group), *waiting}:
            # A CRD changes just before its kinds are served.
            self.loop.queue.add_after(name, _SERVED_SOON)

    def managed_resources(self) -> Iterator[tuple[Key, Object]]:
        """ManagedResources that this process is responsible for."""
        for name, managed_resource in self._source.managed_resources.items():
            if belongs_to_class(managed_resource, resource_class=self._class):
                yield name, managed_resource

    def last_applied(self, name: Key) -> float | None:
        """Unix time at which all of its objects were last as desired; None if unknown to this process."""
        return self._reporter.applied_at(name)

    def repairs(self, name: Key) -> int:
        """Number of times that its objects were repaired in short succession until now."""
        return self._executor.recent_repairs(name)

    def secrets_of_objects(self, name: Key) -> dict[str, str]:
        """Names of the Secrets that its objects come from, by object key, according to the last plan."""
        plan = self._plans.last(name)
        return {wanted.name: wanted.secret for wanted in plan.wanted()} if plan is not None else {}

    def manifest_of(self, name: Key, object_key: str) -> Object | None:
        """Manifest of one of its objects according to the last plan; None if unknown."""
        plan = self._plans.last(name)
        return next((w.object() for w in plan.wanted() if w.name == object_key), None) if plan is not None else None

    def is_being_deleted(self, reference: Object) -> bool:
        """Whether an object that some ManagedResource lists is being deleted, according to the watches."""
        observed = self._live.observed_as(reference)
        return observed is not None and observed.deleting

    def has_finished(self, reference: Object) -> bool:
        """Whether it is a Job that has finished and was therefore removed."""
        return self._live.has_finished_as(reference)

    # --- mapping events to keys

    def _managed_resource_changed(self, change: Change[Object]) -> None:
        subject = change.new or change.old
        if subject is None:
            return
        self._inputs.changed(change.key)
        is_ours = belongs_to_class(subject, resource_class=self._class)
        self._ownership.changed(change, is_elsewhere=not is_ours)
        self._dependencies.changed(change)
        if not is_ours or change.new is None or is_deleting(change.new):
            self._plans.unknown.forget(change.key)
        if not needs_reconcile(change, resource_class=self._class):
            return
        wants_some = is_ours and change.new is not None and not is_deleting(subject)
        # The objects of one that was applied before this process started are those that it lists.
        is_known = change.initial and change.old is None and is_applied(subject)
        if wants_some and (not is_known or self._source.is_outdated(subject)):
            self._plans.outdate(change.key)
        is_outdated = change.key in self._plans.unknown
        priority = first_priority(subject, is_outdated=is_outdated) if change.initial else CHANGE
        self.loop.queue.add(change.key, priority)

    def _secret_changed(self, change: Change[SecretVersion]) -> None:
        """Enqueue the users of a Secret: thousands may use it, so simultaneous changes lead to one pass."""
        if change.old != change.new:
            self._secrets.add(change.key, initial=change.initial)

    def _secret_has_changed(self, name: Key, initial: bool) -> None:
        """Handle the change of a Secret for one ManagedResource that refers to it."""
        managed_resource = self._source.managed_resources.get(name)
        if managed_resource is None:
            return
        if not belongs_to_class(managed_resource, resource_class=self._class):
            self._ownership.changed_elsewhere(name)
            return
        if is_ignored(managed_resource) and not is_deleting(managed_resource):
            return
        self._inputs.changed(name)
        if not is_deleting(managed_resource):
            self._plans.outdate(name)
        self.loop.queue.add(name, first_priority(managed_resource, is_outdated=True) if initial else CHANGE)

    def _object_changed(self, origin: str) -> None:
        try:
            found = parse_origin(origin)
        except ValueError:
            self._log.debug("An object has an invalid origin", origin=origin)
            return
        managed_resource = self._source.managed_resources.get(found.key)
        if found.cluster_id != self._cluster_id or managed_resource is None:
            return
        if not belongs_to_class(managed_resource, resource_class=self._class):
            return
        if is_ignored(managed_resource) and not is_deleting(managed_resource):
            return
        self._inputs.changed(found.key)
        self.loop.queue.add_after(found.key, self._executor.repair_delay(found.key), CHANGE)

    def _highest_priority(self, name: Key) -> Priority:
        """Return the highest priority of a ManagedResource: a mass deletion must not delay repairs of others."""
        managed_resource = self._source.managed_resources.get(name)
        return REMOVAL if managed_resource is None or is_deleting(managed_resource) else CHANGE

    def _enqueue(self, names: Iterable[Key]) -> None:
        for name in names:
            self._inputs.changed(name)
            self.loop.queue.add(name)
