"""The controller `shoot-quota`: deletes Shoots when the lifetime that their Quotas allow has ended.

Shoots    that come, or get another binding or another time in the annotation; and a timer
Bindings  that change: the Shoots that use them
Quotas    that change: the Shoots whose bindings name them

Announcements are kept in memory: a new leader repeats them once.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from agent.controller_manager.common.api import (
    BY_CREDENTIALS_BINDING,
    BY_NAMESPACE,
    BY_QUOTA,
    BY_SECRET_BINDING,
    CREDENTIALS_BINDINGS_VIEW,
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SECRET_BINDINGS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.common.confirmed_deletion import delete_confirmed
from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import CREDENTIALS_BINDINGS, QUOTAS, SECRET_BINDINGS, SHOOTS
from gardener.garden import dual_approval, lifetimes, users
from kube.clock import format_time, parse_time
from kube.objects import Key, Object, annotations, is_deleting, is_truthy, metadata
from kube.repeats import Repeats
from kube.resources import Resource
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, TerminalError
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop, enqueue, enqueue_users
from kube.runtime.predicates import Predicate, all_of, annotation, any_of, changed, happened, listed
from kube.runtime.presence import present

_BINDINGS = {BY_CREDENTIALS_BINDING: CREDENTIALS_BINDINGS_VIEW, BY_SECRET_BINDING: SECRET_BINDINGS_VIEW}
_triggers: Predicate[Object] = any_of(
    listed, changed(lifetimes.binding_of, annotation(keys.SHOOT_EXPIRATION), "metadata.deletionTimestamp")
)
_is_later: Predicate[Object] = all_of(happened, changed())
"""Changes after the start, when all Shoots are checked anyway."""
REASON = "ClusterLifetimeExpiring"
_REPORTER = "shoot-quota-controller"
_UNITS = {timedelta(hours=1): "an hour", timedelta(days=1): "a day", timedelta(days=7): "seven days"}
Read = Callable[[Resource, Key], Awaitable[Object | None]]
ANNOUNCED_BEFORE = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.shoot_quota, context.garden.caches
    loop = ControlLoop("shoot-quota", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(caches, SHOOTS_VIEW, enqueue(when=_triggers))
    bindings = {
        index: loop.watch(caches, view, enqueue_users(partial(_users_of_binding, shoots, index), when=_is_later))
        for index, view in _BINDINGS.items()
    }
    quotas = loop.watch(caches, QUOTAS_VIEW, enqueue_users(partial(_users_of_quota, shoots, bindings), when=_is_later))
    stores = {
        CREDENTIALS_BINDINGS: bindings[BY_CREDENTIALS_BINDING],
        SECRET_BINDINGS: bindings[BY_SECRET_BINDING],
        QUOTAS: quotas,
    }
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            shoots=shoots,
            projects=loop.watch(caches, PROJECTS_VIEW),
            stores=stores,
            recorder=context.recorder,
            sync_period=timedelta(seconds=settings.sync_period),
            clock=context.deletion_clock,
            dry_run=context.dry_run,
        )
    )


def _users_of_binding(shoots: Store[Object], index: str, binding: Key) -> list[Key]:
    return shoots.keys_by_index(index, binding)


def _users_of_quota(shoots: Store[Object], bindings: dict[str, Store[Object]], quota: Key) -> Iterator[Key]:
    for index, store in bindings.items():
        for binding in store.keys_by_index(BY_QUOTA, quota):
            yield from shoots.keys_by_index(index, binding)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    shoots: Store[Object]
    projects: Store[Object]
    stores: Mapping[Resource, Store[Object]]
    """Stores of bindings and Quotas."""
    recorder: EventRecorder
    sync_period: timedelta
    clock: Callable[[], datetime]
    dry_run: bool
    """Do not delete or announce."""
    announced: Repeats[tuple[datetime, timedelta]] = field(default_factory=Repeats)
    """End of the lifetime, and time before it that was announced last."""

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or is_deleting(shoot):
            self.announced.forget(key)
            return Done()
        allowed = await self._lifetime(shoot, self._known)
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
        return RequeueAfter(next_look(until, now, sync_period=self.sync_period).total_seconds())

    # --- lifetime

    async def _lifetime(self, shoot: Object, read: Read) -> timedelta | None:
        """Allowed lifetime of a Shoot; None without a limit.

        Raises:
            ReconcileError: a binding or Quota is missing; the Shoot is not deleted because of that.
        """
        named = lifetimes.binding_of(shoot)
        if named is None:
            return None
        binding = await _demand(read, *named)
        return lifetimes.lifetime([await _demand(read, QUOTAS, key) for key in users.quotas(binding)])

    def _first_end(self, key: Key, shoot: Object, allowed: timedelta) -> str:
        """First end of the lifetime: setting a Quota alone may not cause a deletion that two people have to approve."""
        projects = (project for _, project in self.projects.by_index(BY_NAMESPACE, key.namespace))
        approval = None if _is_confirmed(shoot) else dual_approval.approval_for(shoot, projects)
        earliest = None if approval is None else self.clock() + dual_approval.NOTICE
        return lifetimes.first_end(shoot, allowed, earliest=earliest)

    async def _known(self, resource: Resource, key: Key) -> Object | None:
        return await present(self.client, self.stores[resource], key)

    async def _live(self, resource: Resource, key: Key) -> Object | None:
        return await self.client.find(resource, key)

    # --- writing

    async def _annotate(self, shoot: Object, until: str | None) -> Object:
        """Set or remove the annotation, and return the Shoot."""
        meta = metadata(shoot)
        if annotations(shoot).get(keys.SHOOT_EXPIRATION) == until:
            return shoot
        body = {
            "metadata": {
                "resourceVersion": meta["resourceVersion"],
                "annotations": {keys.SHOOT_EXPIRATION: until},
            }
        }
        written = await self.client.patch_if_exists(SHOOTS, Key(meta["namespace"], meta["name"]), body)
        if written is None:
            return shoot
        self.shoots.observe(written)
        return written

    async def _expire(self, shoot: Object) -> Result:
        if self.dry_run:
            log.info("Dry run: would delete a Shoot whose lifetime has ended")
            return RequeueAfter(self.sync_period.total_seconds())
        if await delete_confirmed(self.client, SHOOTS, shoot, now=self.clock(), is_due=self._is_due):
            log.info("Deleted a Shoot whose lifetime has ended")
        return Done()

    async def _is_due(self, shoot: Object) -> bool:
        until = _end(shoot)
        return until is not None and self.clock() > until and await self._lifetime(shoot, self._live) is not None

    def _announce(self, key: Key, shoot: Object, until: datetime, now: datetime) -> None:
        before = announcement(shoot, until, now)
        if before is None or self.dry_run or not self.announced.news(key, [(until, before)]):
            return
        end = f"The lifetime of the cluster ends in less than {_UNITS[before]}, at {format_time(until)};"
        remedy = f"it will be deleted then; to keep it, set the annotation {keys.SHOOT_EXPIRATION} to a later time"
        self.recorder.event(shoot, "Warning", REASON, f"{end} {remedy}", reporter=_REPORTER)


def _is_confirmed(shoot: Object) -> bool:
    confirmer = annotations(shoot).get(keys.DELETION_CONFIRMED_BY, "")
    return is_truthy(annotations(shoot).get(keys.CONFIRM_DELETION)) and dual_approval.is_person(confirmer)


def _end(shoot: Object) -> datetime | None:
    try:
        return lifetimes.end(shoot)
    except ValueError as error:
        raise TerminalError(f"annotation {keys.SHOOT_EXPIRATION} is not a valid time: {error}") from error


async def _demand(read: Read, resource: Resource, key: Key) -> Object:
    found = await read(resource, key)
    if found is None:
        raise ReconcileError(f"{resource.kind} {key}, which limits the lifetime of the Shoot, does not exist")
    return found


def announcement(shoot: Object, until: datetime, now: datetime) -> timedelta | None:
    """Time before the end that is due for an announcement; None if none is.

    Announcements that were due at the creation are skipped: users know the lifetime of a new Shoot.
    """
    created = parse_time(metadata(shoot)["creationTimestamp"])
    passed = (before for before in ANNOUNCED_BEFORE if created < until - before <= now)
    return min(passed, default=None)


def next_look(until: datetime, now: datetime, *, sync_period: timedelta) -> timedelta:
    """Time until the Shoot has expired or its end is announced, at most the period."""
    moments = (until, *(until - before for before in ANNOUNCED_BEFORE))
    return min(sync_period, *(moment - now for moment in moments if moment > now), timedelta.max)
