"""The ManagedResource controller: what it watches, and which ManagedResources an event concerns.

source   ManagedResources    see `triggers`
         Secrets             those that name it
target   managed objects     the one that an object comes from, if the object is not as it was left
         CustomResourceDefinitions (by `kinds_changed`)   those whose plans wait for a kind
"""

import time
from collections.abc import Iterable, Iterator
from functools import partial

import structlog

from agent.api import MANAGED_RESOURCES
from agent.context import Context
from agent.managed_kinds import ManagedKinds
from agent.managed_resource.plans import Plans
from agent.managed_resource.reconcile import Reconciler, Settings
from agent.managed_resource.restrictions import refusals_of
from agent.managed_resource.scaling import Autoscalers
from agent.managed_resource.source import SecretVersion, Source
from agent.managed_resource.target import Target
from agent.managed_resource.triggers import asks_for_pass
from agent.responsibility import concerns, is_ignored, parse_origin
from agent.service_events import warnings_about
from agent.status import StatusWriter
from kube.cache import Change
from kube.controller import Controller
from kube.objects import Key, Object, is_deleting, key
from kube.queue import CHANGE, RESYNC

_BODIES = 64 << 20
"""Bytes of memory for live objects, compressed; a hundred thousand of usual size. Each more costs a read."""
_LONGEST_PASS = 180.0
_SERVED_SOON = 0.1
_STATUS_SECONDS = 60.0
"""What a pass may take beyond its time limit to say how it went."""


class ManagedResourceLoop:
    """See the module; `context` says where and with which configuration."""

    def __init__(self, context: Context, *, source: Source, kinds: ManagedKinds, status: StatusWriter) -> None:
        settings = context.config.controllers.managed_resource
        self._class = context.config.controllers.resource_class
        self._cluster_id = context.cluster_id
        self._sync_period = settings.sync_period
        self._source = source
        self._target = Target(
            client=context.target.client,
            discovery=context.target.discovery,
            kinds=kinds,
            memory=_BODIES,
            on_change=self._object_changed,
        )
        refusal = partial(refusals_of, settings.restrictions)
        self._plans = Plans(
            self._source,
            context.target.discovery,
            managed_by=settings.managed_by_label_value,
            only_workloads=settings.inject_labels_only_into_workloads,
            refusal=refusal,
        )
        self._autoscalers = Autoscalers(context.target.caches, context.target.discovery)
        limit = min(settings.sync_period, _LONGEST_PASS)
        self._reconciler = Reconciler(
            source=self._source,
            target=self._target,
            plans=self._plans,
            autoscalers=self._autoscalers,
            recorder=context.recorder,
            status=status,
            settings=Settings(
                resource_class=self._class,
                cluster_id=context.cluster_id,
                sync_period=settings.sync_period,
                time_limit=limit,
                always_update=settings.always_update,
                garbage_collector=context.config.controllers.garbage_collector.enabled,
                impersonation=settings.restrictions.impersonation,
            ),
            refusal=refusal,
            wake=self._wake,
            service_warnings=partial(warnings_about, context.target.client),
            changes=context.changes,
        )
        self.controller = Controller(
            "managedresource",
            self._reconciler.reconcile,
            kind=MANAGED_RESOURCES,
            concurrency=settings.concurrent_syncs,
            time_limit=limit + _STATUS_SECONDS,
            # Who mends a ManagedResource's surroundings must not wait longer than for the next regular pass.
            max_backoff=settings.sync_period,
        )
        self._log = structlog.get_logger()

    async def start(self) -> None:
        await self._source.synced()
        self._source.subscribe(managed_resource=self._managed_resource_changed, secret=self._secret_changed)

    async def close(self) -> None:
        await self._reconciler.close()

    def kinds_changed(self, group: str) -> None:
        """The kinds of a group were changed, or there are new ones."""
        self._autoscalers.kinds_changed(group)
        for name in self._plans.with_objects_of(group):
            # The news about a CRD comes just before its kinds are served.
            self.controller.queue.add_after(name, _SERVED_SOON)

    def managed_resources(self) -> Iterator[tuple[Key, Object]]:
        """Those that are ours."""
        for name, managed_resource in self._source.managed_resources.items():
            if concerns(managed_resource, resource_class=self._class):
                yield name, managed_resource

    def last_applied(self, name: Key) -> float | None:
        """Seconds since 1970 when its objects were last all as they should be, as far as this process knows."""
        return self._plans.applied_at(name)

    def repairs(self, name: Key) -> int:
        """How often its objects were put right in short succession, until now."""
        return self._plans.repairs(name, time.monotonic(), longest=self._sync_period)

    def secrets_of_objects(self, name: Key) -> dict[str, str]:
        """The names of the Secrets that its objects come from, by object key, as they were planned last."""
        plan = self._plans.last(name)
        return {wanted.name: wanted.secret for wanted in plan.wanted()} if plan is not None else {}

    def is_being_deleted(self, reference: Object) -> bool:
        """Whether an object that some ManagedResource lists is on its way out, as the watches tell."""
        resource = self._target.discovery.known(reference.get("apiVersion") or "", reference.get("kind") or "")
        if resource is None:
            return False
        namespace = (reference.get("namespace") or "") if resource.namespaced else ""
        observed = self._target.observed(resource, Key(namespace, reference.get("name") or ""))
        return observed is not None and observed.deleting

    # --- mapping events to keys

    def _managed_resource_changed(self, change: Change[Object]) -> None:
        subject = change.new or change.old
        if subject is not None and concerns(subject, resource_class=self._class):
            self._plans.outdate(change.key)
        if asks_for_pass(change, resource_class=self._class):
            self.controller.queue.add(change.key, RESYNC if change.initial else CHANGE)

    def _secret_changed(self, change: Change[SecretVersion]) -> None:
        if change.old == change.new:
            return
        for managed_resource in self._source.users_of(change.key):
            if not concerns(managed_resource, resource_class=self._class):
                continue
            if is_ignored(managed_resource) and not is_deleting(managed_resource):
                continue
            self._plans.outdate(key(managed_resource))
            self.controller.queue.add(key(managed_resource), RESYNC if change.initial else CHANGE)

    def _object_changed(self, origin: str) -> None:
        try:
            found = parse_origin(origin)
        except ValueError:
            self._log.debug("An object has an origin that can't be read", origin=origin)
            return
        managed_resource = self._source.managed_resources.get(found.key)
        if found.cluster_id != self._cluster_id or managed_resource is None:
            return
        if not concerns(managed_resource, resource_class=self._class):
            return
        if is_ignored(managed_resource) and not is_deleting(managed_resource):
            return
        patience = self._plans.memory(found.key).patience(time.monotonic())
        self.controller.queue.add_after(found.key, min(patience, self._sync_period))

    def _wake(self, names: Iterable[Key]) -> None:
        for name in names:
            self.controller.queue.add(name)
