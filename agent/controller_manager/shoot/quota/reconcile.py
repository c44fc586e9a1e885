"""One pass over a Shoot: how long it may live, and its deletion when that is over.

What was announced is kept in memory: a new leader announces it once more.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent.controller_manager.common.api import BY_NAMESPACE
from agent.controller_manager.common.confirmed_deletion import delete_confirmed
from agent.controller_manager.shoot.quota import rules
from gardener import keys
from gardener.api.garden import QUOTAS, SHOOTS
from gardener.garden import dual_approval, lifetimes, users
from kube.clock import format_time
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, is_deleting, is_truthy, metadata
from kube.repeats import Repeats
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, TerminalError
from kube.runtime.events import EventRecorder

REASON = "ClusterLifetimeExpiring"
_REPORTER = "shoot-quota-controller"
_UNITS = {timedelta(hours=1): "an hour", timedelta(days=1): "a day", timedelta(days=7): "seven days"}

Read = Callable[[Resource, Key], Awaitable[Object | None]]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    shoots: Store[Object]
    projects: Store[Object]
    stores: Mapping[Resource, Store[Object]]
    """Of bindings and Quotas."""
    recorder: EventRecorder
    sync_period: timedelta
    clock: Callable[[], datetime]
    dry_run: bool
    """Nothing is deleted or announced."""
    announced: Repeats[tuple[datetime, timedelta]] = field(default_factory=Repeats)
    """The end, and how long before it that was announced last."""

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or is_deleting(shoot):
            self.announced.forget(key)
            return Done()
        allowed = await self._lifetime(shoot, self._cached)
        if allowed is None:
            await self._annotate(shoot, None)
            return RequeueAfter(self.sync_period.total_seconds())
        if keys.SHOOT_EXPIRATION not in annotations(shoot):
            shoot = await self._annotate(shoot, self._first_end(key, shoot, allowed))
        until, now = _end(shoot), self.clock()
        if until is None:
            return Done()
        if now > until:
            return await self._expire(shoot)
        self._announce(key, shoot, until, now)
        return RequeueAfter(rules.next_look(until, now, sync_period=self.sync_period).total_seconds())

    # --- what it may

    async def _lifetime(self, shoot: Object, read: Read) -> timedelta | None:
        """Raises ReconcileError: not all that says so can be found; a Shoot is not deleted for what is missing."""
        named = lifetimes.binding_of(shoot)
        if named is None:
            return None
        binding = await _demand(read, *named)
        return lifetimes.lifetime([await _demand(read, QUOTAS, key) for key in users.quotas(binding)])

    def _first_end(self, key: Key, shoot: Object, allowed: timedelta) -> str:
        """Who may give it a Quota may not by that alone delete what two people have to delete."""
        projects = (project for _, project in self.projects.by_index(BY_NAMESPACE, key.namespace))
        approval = None if _is_confirmed(shoot) else dual_approval.approval_for(shoot, projects)
        earliest = None if approval is None else self.clock() + dual_approval.NOTICE
        return lifetimes.first_end(shoot, allowed, earliest=earliest)

    async def _cached(self, resource: Resource, key: Key) -> Object | None:
        return self.stores[resource].get(key)

    async def _live(self, resource: Resource, key: Key) -> Object | None:
        return await self.client.find(resource, key.name, namespace=key.namespace)

    # --- what is written

    async def _annotate(self, shoot: Object, until: str | None) -> Object:
        """The Shoot as it is then."""
        meta = metadata(shoot)
        if annotations(shoot).get(keys.SHOOT_EXPIRATION) == until:
            return shoot
        body = {
            "metadata": {
                "resourceVersion": meta["resourceVersion"],
                "annotations": {keys.SHOOT_EXPIRATION: until},
            }
        }
        try:
            written = await self.client.patch(SHOOTS, meta["name"], body, namespace=meta["namespace"])
        except NotFound:
            return shoot
        self.shoots.observe(written)
        return written

    async def _expire(self, shoot: Object) -> Result:
        if self.dry_run:
            log.info("Dry run: a Shoot would be deleted, since its lifetime has ended")
            return RequeueAfter(self.sync_period.total_seconds())
        if await delete_confirmed(self.client, SHOOTS, shoot, now=self.clock(), is_due=self._is_due):
            log.info("Deleted a Shoot, since its lifetime has ended")
        return Done()

    async def _is_due(self, shoot: Object) -> bool:
        until = _end(shoot)
        return until is not None and self.clock() > until and await self._lifetime(shoot, self._live) is not None

    def _announce(self, key: Key, shoot: Object, until: datetime, now: datetime) -> None:
        before = rules.announcement(shoot, until, now)
        if before is None or self.dry_run or not self.announced.news(key, [(until, before)]):
            return
        told = f"The lifetime of the cluster ends in less than {_UNITS[before]}, at {format_time(until)};"
        remedy = f"it is deleted then, unless the annotation {keys.SHOOT_EXPIRATION} is set to a later time"
        self.recorder.event(shoot, "Warning", REASON, f"{told} {remedy}", reporter=_REPORTER)


def _is_confirmed(shoot: Object) -> bool:
    confirmer = annotations(shoot).get(keys.DELETION_CONFIRMED_BY, "")
    return is_truthy(annotations(shoot).get(keys.CONFIRM_DELETION)) and dual_approval.is_person(confirmer)


def _end(shoot: Object) -> datetime | None:
    try:
        return lifetimes.end(shoot)
    except ValueError as error:
        raise TerminalError(f"the annotation {keys.SHOOT_EXPIRATION} is no time: {error}") from error


async def _demand(read: Read, resource: Resource, key: Key) -> Object:
    found = await read(resource, key)
    if found is None:
        raise ReconcileError(f"{resource.kind} {key}, which says how long the Shoot may live, does not exist")
    return found
