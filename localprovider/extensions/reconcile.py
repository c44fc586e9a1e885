"""The contract of an extension controller, for one object of any kind.

    requested    the annotation of the operation is removed, and the status is Processing
    in progress  a finalizer keeps the object meanwhile
    answered     the status has the result, for this generation, at a time after the request

On migration the finalizer is removed before the status reports success: an object that is deleted then is not
destroyed, even if this process ends in between.

A pass may end at any point. An operation that was begun and not answered begins again; one whose annotation is already
removed is found by its state. An object whose Shoot has failed, or has to be ignored, is left alone.

A pass waits for nothing that a tenant decides, as it occupies one of few workers: long operations are checked again
later.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from gardener import keys, operations
from gardener.extension_contract import last_operation
from gardener.garden.shoots import has_failed
from kube.clock import format_time, time_or_none
from kube.errors import KubeError
from kube.objects import (
    Key,
    Object,
    annotations,
    finalizers,
    integer,
    is_deleting,
    is_truthy,
    key,
    mapping,
    metadata,
    text,
    uid,
)
from kube.paths import at
from kube.runtime.cache import Store
from kube.runtime.client import JSON_PATCH
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result, is_conflict
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import StatusWriter
from localprocesses.confined import OutsideError
from localprovider.extensions.actuators import Actuator, World
from localprovider.extensions.machines.worker import LONGEST_SECONDS, LOOK_SECONDS, NotReady
from localprovider.extensions.simulation import Simulation, simulation_of
from localprovider.extensions.state import BucketAway, NoNetworkLeft

TYPE = "local"
_SOON = 0.1
FINALIZER = "extensions.gardener.cloud/local"
_OPERATION_PATH = f"/metadata/annotations/{keys.OPERATION.replace('/', '~1')}"
_ASKS = {
    keys.OPERATION_RECONCILE: operations.RECONCILE,
    keys.OPERATION_RESTORE: operations.RESTORE,
    keys.OPERATION_MIGRATE: operations.MIGRATE,
}
_LETS_GO = {operations.DELETE, operations.MIGRATE}
_PHRASES = {operations.DELETE: "Deleting", operations.MIGRATE: "Migrating", operations.RESTORE: "Restoring"}

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def operation_on(obj: Object) -> str:
    """Operation that has to be done; empty if there is none."""
    requested, last = annotations(obj).get(keys.OPERATION, ""), last_operation(obj)
    kind, has_succeeded = text(last.get("type")), last.get("state") == operations.SUCCEEDED
    if requested == keys.OPERATION_MIGRATE:
        return operations.MIGRATE
    if is_deleting(obj):  # a migrating object is not destroyed
        return operations.MIGRATE if kind == operations.MIGRATE else operations.DELETE
    if requested == keys.OPERATION_WAIT_FOR_STATE:
        return ""
    if requested == keys.OPERATION_RESTORE:
        return operations.RESTORE
    if not requested and has_succeeded:
        return ""
    if not last:
        return operations.CREATE
    is_other = kind == operations.DELETE or (kind == operations.MIGRATE and requested == keys.OPERATION_RECONCILE)
    return operations.RECONCILE if has_succeeded or is_other else kind


def is_to_be_left_alone(cluster: Object) -> bool:
    """Whether the Shoot of a Cluster has failed with its current spec, or has to be ignored."""
    shoot = mapping(at(cluster, "spec", "shoot"))
    return has_failed(shoot) or is_truthy(annotations(shoot).get(keys.SHOOT_IGNORE))


def answer_time(obj: Object, now: datetime) -> datetime:
    """Time of an answer: not before the request, even if the clocks of the two sides differ."""
    requested = time_or_none(annotations(obj).get(keys.TIMESTAMP))
    return now if requested is None else max(now, requested)


@dataclass(frozen=True, slots=True)
class _Wait:
    """An operation in progress.

    Attributes:
        uid: uid of the object.
        operation: type of the operation.
        began: monotonic seconds.
    """

    uid: str
    operation: str
    began: float


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    actuator: Actuator
    world: World
    clock: Callable[[], datetime]
    now: Callable[[], float] = time.monotonic
    _objects: Store[Object] | None = None
    _clusters: Store[bool] | None = None
    _statuses: StatusWriter | None = None
    _waits: dict[Key, _Wait] = field(default_factory=dict)
    """Operations in progress, by object."""
    _failures: dict[str, int] = field(default_factory=dict)
    """Number of simulated failures of objects, by uid."""

    def begin(self, objects: Store[Object], clusters: Store[bool], statuses: StatusWriter) -> None:
        """Begin when the kinds are served."""
        self._objects, self._clusters, self._statuses = objects, clusters, statuses

    async def reconcile(self, name: Key) -> Result:
        if self._clusters is None or not self._clusters.synced.is_set():
            return RequeueAfter(_SOON)
        obj = self._objects.get(name) if self._objects is not None else None
        operation = operation_on(obj) if obj is not None else ""
        if obj is None or not operation or self._is_left_alone(name):
            self._waits.pop(name, None)
            return Done()
        if is_deleting(obj) and FINALIZER not in finalizers(obj):
            return Done()
        if operation not in _LETS_GO:
            obj = await ensure_finalizer(self.world.client, self.actuator.resource, obj, FINALIZER)
        obj = await self._start(obj, operation)
        waited = self._waited(obj, operation)
        try:
            simulation = simulation_of(obj)
            if simulation.is_stuck:
                return Done()
            if waited < simulation.delay:
                return RequeueAfter(simulation.delay - waited)
            self._simulate(obj, simulation)
            fields = await self._act(obj, operation)
        except NotReady as error:
            if waited < simulation.delay + LONGEST_SECONDS:
                return RequeueAfter(LOOK_SECONDS)
            await self._fail(obj, operation, error)
            raise
        except (KubeError, ReconcileError, BucketAway, NoNetworkLeft, OutsideError, ValueError, OSError) as error:
            if is_conflict(error):
                raise
            await self._fail(obj, operation, error)
            raise ReconcileError(str(error)) from error
        self._failures.pop(uid(obj), None)
        self._waits.pop(name, None)
        await self._end(obj, operation, fields)
        return Done()

    def _is_left_alone(self, name: Key) -> bool:
        return bool(self._clusters is not None and self._clusters.get(Key("", name.namespace)))

    def _waited(self, obj: Object, operation: str) -> float:
        """Seconds for which the operation has been in progress."""
        name, now = key(obj), self.now()
        wait = self._waits.get(name)
        if wait is None or (wait.uid, wait.operation) != (uid(obj), operation):
            wait = self._waits[name] = _Wait(uid(obj), operation, now)
        return now - wait.began

    async def _start(self, obj: Object, operation: str) -> Object:
        """Write the status first: if this process ends in between, the annotation causes another pass."""
        if self._is_under_way(obj, operation):
            return obj
        phrase = _PHRASES.get(operation, "Reconciling")
        reported = f"{phrase} the {self.actuator.resource.kind}"
        obj = await self._write(obj, self._operation(obj, operation, operations.PROCESSING, 1, reported), {})
        requested = annotations(obj).get(keys.OPERATION)
        if requested not in _ASKS or operation == operations.DELETE:
            return obj
        name = key(obj)
        patch = [
            {"op": "test", "path": _OPERATION_PATH, "value": requested},
            {"op": "remove", "path": _OPERATION_PATH},
        ]
        written = await self.world.client.patch(self.actuator.resource, name, patch, content_type=JSON_PATCH)
        self._observe(written)
        return written

    def _is_under_way(self, obj: Object, operation: str) -> bool:
        """Whether the status already reports the operation, and there is no newer request."""
        wait, last = self._waits.get(key(obj)), last_operation(obj)
        return (
            wait is not None
            and (wait.uid, wait.operation) == (uid(obj), operation)
            and (last.get("type"), last.get("state")) == (operation, operations.PROCESSING)
            and keys.OPERATION not in annotations(obj)
        )

    def _simulate(self, obj: Object, simulation: Simulation) -> None:
        """Fail as often as the object requests.

        Raises:
            ReconcileError: the simulated failure.
        """
        failures = self._failures.get(uid(obj), 0)
        if simulation.fails(failures):
            self._failures[uid(obj)] = failures + 1
            raise _SimulatedError(simulation.error, code=simulation.code)

    async def _act(self, obj: Object, operation: str) -> Object:
        match operation:
            case operations.DELETE:
                await self.actuator.remove(self.world, obj)
                return {}
            case operations.MIGRATE:
                return {}
            case _:
                return await self.actuator.make(self.world, obj)

    async def _fail(self, obj: Object, operation: str, error: Exception) -> None:
        self._waits.pop(key(obj), None)
        codes = [error.code] if isinstance(error, _SimulatedError) and error.code else None
        reported = str(error)
        moment = format_time(answer_time(obj, self.clock()))
        last_error = {"description": reported, "codes": codes, "lastUpdateTime": moment}
        fields = {"lastError": {name: value for name, value in last_error.items() if value}}
        await self._write(obj, self._operation(obj, operation, operations.ERROR, 50, reported), fields)

    async def _end(self, obj: Object, operation: str, fields: Object) -> None:
        if operation == operations.MIGRATE:
            left = await self._let_go(obj)
            if left is None:
                return
            obj = left
        reported = f"Successfully handled the {self.actuator.resource.kind}"
        ended = self._operation(obj, operation, operations.SUCCEEDED, 100, reported)
        obj = await self._write(obj, ended, {**fields, "lastError": None})
        if operation == operations.DELETE:
            await self._let_go(obj)

    async def _let_go(self, obj: Object) -> Object | None:
        """Return the object without the finalizer; None if it is gone."""
        left = await remove_finalizer(self.world.client, self.actuator.resource, obj, FINALIZER)
        if left is not None:
            self._observe(left)
        return left

    async def _write(self, obj: Object, operation: Object, fields: Object) -> Object:
        generation = integer(metadata(obj).get("generation"))
        assert self._statuses is not None
        status = {"lastOperation": operation, "observedGeneration": generation, **fields}
        changed = await self._statuses.write(obj, status)
        self._observe(changed)
        return changed

    def _operation(self, obj: Object, kind: str, state: str, progress: int, reported: str) -> Object:
        now = answer_time(obj, self.clock())
        return operations.operation(kind, state, progress, reported, now=now)

    def _observe(self, obj: Object) -> None:
        assert self._objects is not None
        self._objects.observe(obj)


class _SimulatedError(ReconcileError):
    def __init__(self, reported: str, *, code: str) -> None:
        super().__init__(reported)
        self.code = code
