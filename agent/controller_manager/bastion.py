"""The controller `bastion`: deletes Bastions that have expired, are too old, or whose Shoot is gone or on another Seed.

Bastions   all changes, those of the status alone a moment later; and a timer for the end of each
Shoots     that are deleted or move: their Bastions

The cache of Shoots may lag, and most Bastions are created right after a change of their Shoot. So the Shoot is read
from the API server before a Bastion is deleted because of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import BASTIONS, SHOOTS
from kube.clock import format_time, seconds_until, time_or_none
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, integer, is_deleting, key, metadata, spec, text, uid
from kube.paths import at
from kube.runtime.cache import Change, Store, View
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, Queue, enqueue_users
from kube.runtime.predicates import Predicate, all_of, any_of, changed, updated, went
from kube.runtime.priorities import CHANGE, RESYNC
from kube.runtime.status import StatusWriter

TIME_TO_LIVE = timedelta(hours=1)
"""Lifetime of a Bastion after a heartbeat."""
_BY_SHOOT = "shoot"
_PATIENCE_SECONDS = 1.0
moves_or_goes: Predicate[Object] = any_of(went, all_of(updated, changed("metadata.deletionTimestamp", "spec.seedName")))
_SHORTEST_PAUSE = 1.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bastion:
    """Cached fields of a Bastion."""

    uid: str
    version: str
    generation: int
    shoot: Key
    seed: str
    created: datetime | None
    expires: datetime | None
    asks_for_heartbeat: bool
    """Whether the Bastion has no heartbeat yet, or a user requests to keep it alive."""
    is_kept_alive: bool
    """Whether an annotation requests to keep the Bastion alive; it is removed after the heartbeat."""
    is_deleting: bool

    @classmethod
    def of(cls, obj: Object) -> "Bastion":
        is_kept_alive = annotations(obj).get(keys.OPERATION) == keys.OPERATION_KEEPALIVE
        return cls(
            uid=uid(obj),
            version=text(metadata(obj).get("resourceVersion")),
            generation=integer(metadata(obj).get("generation")),
            shoot=Key(key(obj).namespace, text(at(spec(obj), "shootRef", "name"))),
            seed=text(spec(obj).get("seedName")),
            created=time_or_none(metadata(obj).get("creationTimestamp")),
            expires=time_or_none(at(obj, "status", "expirationTimestamp")),
            asks_for_heartbeat=is_kept_alive or not at(obj, "status", "lastHeartbeatTimestamp"),
            is_kept_alive=is_kept_alive,
            is_deleting=is_deleting(obj),
        )


def why_useless(bastion: Bastion, shoot: Object | None) -> str:
    """Return the reason why the Shoot needs no Bastion; empty if it does."""
    if shoot is None:
        return "its Shoot does not exist"
    if is_deleting(shoot):
        return "its Shoot is being deleted"
    if text(spec(shoot).get("seedName")) != bastion.seed:
        return "its Shoot is on another Seed"
    return ""


def end(bastion: Bastion, *, max_lifetime: timedelta) -> datetime | None:
    """Latest time of the deletion; None if unknown."""
    too_old = bastion.created + max_lifetime if bastion.created is not None else None
    return min((time for time in (too_old, bastion.expires) if time is not None), default=None)


def _shoot_of(bastion: Bastion) -> tuple[Key, ...]:
    return (bastion.shoot,)


_BASTIONS_VIEW = View(BASTIONS, Bastion.of, indexes=((_BY_SHOOT, _shoot_of),))


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.bastion, context.garden
    loop = ControlLoop("bastion", kind=BASTIONS, workers=settings.concurrent_syncs)
    bastions = loop.watch(garden.caches, _BASTIONS_VIEW, _enqueue_changed)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue_users(partial(_bastions_of, bastions), when=moves_or_goes))
    return loop.reconciled_by(
        Reconciler(
            client=garden.client,
            status=StatusWriter(garden.client, bastions),
            bastions=bastions,
            shoots=shoots,
            max_lifetime=timedelta(seconds=settings.max_lifetime),
            clock=context.deletion_clock,
        )
    )


def _enqueue_changed(queue: Queue, change: Change[Bastion]) -> None:
    """Enqueue a Bastion; delay changes of the status alone, most of which are heartbeats and only extend the wait."""
    old, new = change.old, change.new
    if new is None:
        return
    if change.initial:
        queue.add(change.key, RESYNC)
    elif old is not None and old.generation == new.generation and not new.asks_for_heartbeat:
        queue.add_after(change.key, _PATIENCE_SECONDS, CHANGE)
    else:
        queue.add(change.key, CHANGE)


def _bastions_of(bastions: Store[Bastion], shoot: Key) -> list[Key]:
    return bastions.keys_by_index(_BY_SHOOT, shoot)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    status: StatusWriter
    bastions: Store[Bastion]
    shoots: Store[Object]
    max_lifetime: timedelta
    clock: Callable[[], datetime]

    async def reconcile(self, key: Key) -> Result:
        bastion = self.bastions.get(key)
        if bastion is None or bastion.is_deleting:
            return Done()
        if reason := await self._why_useless(bastion):
            return await self._delete(key, bastion, reason)
        now = self.clock()
        if bastion.asks_for_heartbeat:
            await self._record_heartbeat(key, bastion, now)
            return Done()  # the write leads to another pass
        until = end(bastion, max_lifetime=self.max_lifetime)
        if until is None:
            return Done()
        if now > until:
            return await self._delete(key, bastion, "it has expired")
        return RequeueAfter(max(seconds_until(until, now, longest=self.max_lifetime.total_seconds()), _SHORTEST_PAUSE))

    async def _why_useless(self, bastion: Bastion) -> str:
        if not why_useless(bastion, self.shoots.get(bastion.shoot)):
            return ""
        try:
            live = await self.client.find(SHOOTS, bastion.shoot)
        except KubeError as error:
            raise ReconcileError(f"could not get shoot {bastion.shoot}: {error}") from error
        return why_useless(bastion, live)

    async def _delete(self, key: Key, bastion: Bastion, reason: str) -> Result:
        """Delete the Bastion unless it has changed; one with a new heartbeat is checked again."""
        if not await self.client.delete_if_exists(BASTIONS, key, uid=bastion.uid, resource_version=bastion.version):
            return Done()
        log.info("Deleted a Bastion", reason=reason)
        return Done()

    async def _record_heartbeat(self, key: Key, bastion: Bastion, now: datetime) -> None:
        """Write status, then metadata, since one write can't cover both; the second write ends the request for both."""
        status = {
            "lastHeartbeatTimestamp": format_time(now),
            "expirationTimestamp": format_time(now + TIME_TO_LIVE),
        }
        meta = {"namespace": key.namespace, "name": key.name, "resourceVersion": bastion.version}
        written = await self.status.write({"metadata": meta}, status)
        if bastion.is_kept_alive:
            version = written["metadata"]["resourceVersion"]
            done = {keys.OPERATION: None}
            self.bastions.observe(await self.client.annotate(BASTIONS, key, done, resource_version=version))
