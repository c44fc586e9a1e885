"""The contract of an extension controller, for one object of any kind.

    requested    the status is Processing, then the annotation of the operation is removed
    in progress  a finalizer keeps the object meanwhile
    answered     the status has the result, for this generation, at a time after the request

On migration the finalizer is removed before the status reports success: an object that is deleted then is not
destroyed, even if this process ends in between.

A pass may end at any point. An operation that was begun and not answered begins again; one whose annotation is already
removed is found by its state. An object whose Shoot has failed, or has to be ignored, is left alone.

A pass waits for nothing that a tenant decides, as it occupies one of few workers: long operations are checked again
later, see `Pending`. A failed one is retried with a growing delay.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from extension.actuators import Actuator
from extension.errors import CodedError, Pending
from extension.rules import answer_time, operation_on
from gardener import keys, operations
from gardener.extension_contract import last_operation
from kube.clock import format_time
from kube.objects import Key, Object, annotations, finalizers, integer, is_deleting, key, metadata, uid
from kube.runtime.cache import Store
from kube.runtime.controller import Done, RequeueAfter, Result, is_conflict
from kube.runtime.edits import take_annotation
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer
from kube.runtime.status import Overtaken, StatusWriter

_SOON = 0.1
_ASKS = {
    keys.OPERATION_RECONCILE: operations.RECONCILE,
    keys.OPERATION_RESTORE: operations.RESTORE,
    keys.OPERATION_MIGRATE: operations.MIGRATE,
}
_LETS_GO = {operations.DELETE, operations.MIGRATE}
_PHRASES = {operations.DELETE: "Deleting", operations.MIGRATE: "Migrating", operations.RESTORE: "Restoring"}


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
    clock: Callable[[], datetime]
    now: Callable[[], float] = time.monotonic
    _objects: Store[Object] | None = None
    _clusters: Store[bool] | None = None
    _statuses: StatusWriter | None = None
    _waits: dict[Key, _Wait] = field(default_factory=dict)
    """Operations in progress, by object."""

    def begin(self, objects: Store[Object], clusters: Store[bool], statuses: StatusWriter) -> None:
        """Begin when the kinds are served."""
        self._objects, self._clusters, self._statuses = objects, clusters, statuses

    async def reconcile(self, name: Key) -> Result:
        if self._clusters is None or not self._clusters.synced.is_set():
            return RequeueAfter(_SOON)
        obj = self._objects.get(name) if self._objects is not None else None
        operation = operation_on(obj) if obj is not None and self.actuator.handles(obj) else ""
        if obj is None or not operation or self._clusters.get(Key("", name.namespace)):
            self._waits.pop(name, None)
            return Done()
        actuator = self.actuator
        if is_deleting(obj) and actuator.finalizer not in finalizers(obj):
            return Done()
        if operation not in _LETS_GO:
            obj = await ensure_finalizer(actuator.seed, actuator.resource, obj, actuator.finalizer)
        obj = await self._start(obj, operation)
        waited = self._waited(obj, operation)
        try:
            fields = await actuator.act(operation, obj, waited=waited)
        except Pending as pending:
            if pending.longest is not None and waited >= pending.longest:
                await self._fail(obj, operation, pending)
                raise
            await self._report_wait(obj, operation, str(pending))
            return Done() if pending.seconds is None else RequeueAfter(pending.seconds)
        except Exception as error:
            if is_conflict(error):
                raise
            await self._fail(obj, operation, error)
            raise
        self._waits.pop(name, None)
        await self._end(obj, operation, fields)
        return Done()

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
        reported = f"{_PHRASES.get(operation, 'Reconciling')} the {self.actuator.resource.kind}"
        obj = await self._write(obj, self._operation(obj, operation, operations.PROCESSING, 1, reported), {})
        if annotations(obj).get(keys.OPERATION) not in _ASKS or operation == operations.DELETE:
            return obj
        taken = await take_annotation(self.actuator.seed, self.actuator.resource, obj, keys.OPERATION)
        self._observe(taken)
        if keys.OPERATION in annotations(taken):
            raise Overtaken(taken)
        return taken

    def _is_under_way(self, obj: Object, operation: str) -> bool:
        """Whether the status already reports the operation, and there is no newer request."""
        wait, last = self._waits.get(key(obj)), last_operation(obj)
        return (
            wait is not None
            and (wait.uid, wait.operation) == (uid(obj), operation)
            and (last.get("type"), last.get("state")) == (operation, operations.PROCESSING)
            and keys.OPERATION not in annotations(obj)
        )

    async def _report_wait(self, obj: Object, operation: str, reason: str) -> None:
        last = last_operation(obj)
        waiting = self._operation(obj, operation, operations.PROCESSING, integer(last.get("progress")), reason)
        await self._write(obj, operations.following(last, waiting), {})

    async def _fail(self, obj: Object, operation: str, error: Exception) -> None:
        self._waits.pop(key(obj), None)
        reported, codes = str(error) or type(error).__name__, error.codes if isinstance(error, CodedError) else ()
        moment = format_time(answer_time(obj, self.clock()))
        last_error: Object = {"description": reported, "lastUpdateTime": moment, "codes": list(codes) or None}
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
        actuator = self.actuator
        left = await remove_finalizer(actuator.seed, actuator.resource, obj, actuator.finalizer)
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
