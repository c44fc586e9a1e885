"""The controller `shoot-maintenance`: maintains a Shoot at a random time of its window, each day.

It checks at once if a user requests maintenance, and if the window changes, which may include the present time then.
Writes of a pass, in this order:

    status.lastMaintenance   pending changes; it marks the Shoot as maintained in this occurrence of the window
    the Shoot                versions, operation, tasks; in a pass without changes it is reconciled all the same
    status.lastMaintenance   success

Changes are tried in a dry run before: if the API server refuses them, they are not tried again before the next
occurrence. A conflict is no refusal: the changes are planned again.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog

from agent.controller_manager.common.api import (
    CLOUD_PROFILES_VIEW,
    CREDENTIALS_BINDINGS_VIEW,
    NAMESPACED_CLOUD_PROFILES_VIEW,
    SECRET_BINDINGS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.context import Context
from gardener import keys
from gardener.api.garden import CLOUD_PROFILES, CREDENTIALS_BINDINGS, NAMESPACED_CLOUD_PROFILES, SHOOTS
from gardener.garden import users
from gardener.garden.maintenance import bindings
from gardener.garden.maintenance.plan import Plan, Restarts, plan
from gardener.garden.maintenance.report import MAINTENANCE_FAILED, begun, description, ended, messages, refused
from gardener.garden.maintenance.schedule import (
    Uniform,
    is_asked_for,
    is_due,
    seconds_at_start,
    seconds_until_next,
    time_window,
)
from gardener.garden.profiles import chosen_from, profile_of
from kube.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    TooLarge,
    refusal_of,
)
from kube.objects import Key, Object, is_deleting, key, metadata, spec
from kube.paths import mapping_at
from kube.resources import Resource
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.edits import take_annotation
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop, EventHandler, Queue
from kube.runtime.presence import present
from kube.runtime.priorities import CHANGE, RESYNC
from kube.runtime.status import StatusWriter
from kube.write_mode import WriteMode

_REPORTER = "shoot-maintenance-controller"
_REFUSALS = (BadRequest, Forbidden, Invalid, TooLarge)
_DRY_RUN = WriteMode(dry_run=True)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context, uniform: Uniform = random.uniform) -> ControlLoop:
    settings, caches = context.config.controllers.shoot_maintenance, context.garden.caches
    loop = ControlLoop("shoot-maintenance", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(caches, SHOOTS_VIEW, handler(context.clock, uniform))
    profiles = {
        view.resource: loop.watch(caches, view) for view in (CLOUD_PROFILES_VIEW, NAMESPACED_CLOUD_PROFILES_VIEW)
    }
    return loop.reconciled_by(
        Reconciler(
            client=context.garden.client,
            status=StatusWriter(context.garden.client, shoots),
            shoots=shoots,
            profiles=profiles,
            secret_bindings=loop.watch(caches, SECRET_BINDINGS_VIEW),
            credentials_bindings=loop.watch(caches, CREDENTIALS_BINDINGS_VIEW),
            recorder=context.recorder,
            clock=context.clock,
            uniform=uniform,
            restarts=Restarts(
                control_plane=settings.enable_shoot_control_plane_restarter,
                core_addons=settings.enable_shoot_core_addon_restarter,
            ),
            dry_run=context.dry_run,
        )
    )


def handler(clock: Callable[[], datetime], uniform: Uniform) -> EventHandler[Object]:
    def handle(queue: Queue, change: Change[Object]) -> None:
        old, new = change.old, change.new
        if new is None or is_deleting(new):
            return
        if old is None and change.initial:
            queue.add_after(change.key, seconds_at_start(new, clock(), uniform), RESYNC)
        elif old is None or _is_asked_anew(old, new) or time_window(old) != time_window(new):
            queue.add(change.key, CHANGE)

    return handle


def _is_asked_anew(old: Object, new: Object) -> bool:
    return is_asked_for(new) and not is_asked_for(old)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    status: StatusWriter
    shoots: Store[Object]
    profiles: Mapping[Resource, Store[Object]]
    """Profiles by their kind."""
    secret_bindings: Store[Object]
    credentials_bindings: Store[Object]
    recorder: EventRecorder
    clock: Callable[[], datetime]
    uniform: Uniform
    restarts: Restarts
    dry_run: bool
    """Only log planned changes."""

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or is_deleting(shoot):
            return Done()
        now = self.clock()
        if is_due(shoot, now):
            drawn = plan(
                shoot,
                await self._profile(shoot),
                now=now,
                restarts=self.restarts,
                replacement=partial(self._replacement, shoot),
            )
            if self.dry_run:
                _log_plan(drawn)
            else:
                try:
                    await self._carry_out(shoot, drawn, now)
                except NotFound:
                    return Done()
        return RequeueAfter(seconds_until_next(shoot, self.clock(), self.uniform))

    async def _profile(self, shoot: Object) -> Object:
        """Spec of the Shoot's profile, with changes by the project."""
        resource, name = profile_of(spec(shoot))
        profiles = [Key("", name)]
        if resource == NAMESPACED_CLOUD_PROFILES:
            own = await present(self.client, self.profiles[resource], Key(key(shoot).namespace, name))
            profiles = list(users.parents(own or {}))
        for each in profiles:
            await present(self.client, self.profiles[CLOUD_PROFILES], each)
        content = chosen_from(shoot, lambda resource, name: self.profiles[resource].get(name))
        if not content:
            raise ReconcileError(f'the {resource.kind} "{name}" of the Shoot does not exist, or has no content yet')
        return content

    def _replacement(self, shoot: Object) -> Object | None:
        """CredentialsBinding that may replace the SecretBinding of the Shoot."""
        names = users.secret_bindings(shoot)
        found = next((each for each in map(self.secret_bindings.get, names) if each is not None), None)
        return None if found is None else bindings.replacement(found, self.credentials_bindings.values())

    async def _carry_out(self, shoot: Object, drawn: Plan, now: datetime) -> None:
        present = shoot
        if drawn.binding is not None and bindings.is_new(drawn.binding):
            made = await self.client.create_if_missing(CREDENTIALS_BINDINGS, drawn.binding)
            if made is not None:
                self.credentials_bindings.observe(made)
        if drawn.is_change:
            if error := await self._refusal(drawn):
                await self._give_up(shoot, refused(error, now))
                return
            present = await self.status.write(shoot, {"lastMaintenance": begun(drawn, now)})
        await self._conclude(await self._apply(present, drawn), drawn)
        for message in messages(drawn):
            self.recorder.event(shoot, message.type, message.reason, message.text, reporter=_REPORTER)

    # --- changes

    async def _refusal(self, drawn: Plan) -> str:
        """Reason why the API server refuses the changes; empty if it accepts them."""
        try:
            await self.client.replace(SHOOTS, drawn.maintained, mode=_DRY_RUN)
        except _REFUSALS as error:
            return refusal_of(error)
        return ""

    async def _apply(self, present: Object, drawn: Plan) -> Object:
        """Write the Shoot; its status may be newer than the planned one."""
        version = metadata(present)["resourceVersion"]
        maintained = {**drawn.maintained, "metadata": {**metadata(drawn.maintained), "resourceVersion": version}}
        if _is_written(present, maintained):
            return present
        try:
            written = await self.client.replace(SHOOTS, maintained)
        except (Conflict, NotFound):
            raise
        except KubeError as error:
            self.recorder.event(present, "Warning", MAINTENANCE_FAILED, refusal_of(error), reporter=_REPORTER)
            raise
        self.shoots.observe(written)
        return written

    async def _give_up(self, shoot: Object, last: Object) -> None:
        """Report the failure, and wait for the next occurrence of the window or another request for maintenance."""
        log.warning("Shoot maintenance failed", error=last["failureReason"])
        written = await self.status.write(shoot, {"lastMaintenance": last})
        if is_asked_for(shoot):
            self.shoots.observe(await take_annotation(self.client, SHOOTS, written, keys.OPERATION))

    async def _conclude(self, present: Object, drawn: Plan) -> None:
        """Report the end, also if another writer changes the Shoot meanwhile: a later pass could not."""
        last = mapping_at(present, "status", "lastMaintenance")
        while mapping_at(present, "status", "lastMaintenance") == last:
            try:
                await self.status.write(present, {"lastMaintenance": ended(last, changed=drawn.is_change)})
                return
            except Conflict:
                own = key(present)
                present = await self.client.get(SHOOTS, own)


def _is_written(present: Object, maintained: Object) -> bool:
    return all(present.get(part) == maintained.get(part) for part in ("metadata", "spec"))


def _log_plan(drawn: Plan) -> None:
    changes = description(drawn) if drawn.is_change else "no changes but for a reconciliation"
    log.info("Dry run: would maintain the Shoot", changes=changes)
