"""One pass of a health controller over a ManagedResource: check its objects, and write a changed condition.

Mostly the condition is written already: the status writer requests `advice` for every write, and adds the condition
that is known from memory.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from agent.resource_manager.common.inputs import Inputs
from agent.resource_manager.health.checks import Check, Found
from agent.resource_manager.health.conditions import conditions_to_write
from agent.resource_manager.health.objects import NotKnown
from agent.resource_manager.health.predicates import Eligibility, eligibility
from gardener.health.findings import Finding, Reference, references
from kube.clock import utc_now
from kube.conditions import Condition
from kube.errors import KubeError
from kube.objects import Key, Object, key
from kube.runtime.cache import Store
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.events import EventRecorder
from kube.runtime.priorities import RESYNC
from kube.runtime.status import Advice, StatusWriter

LONGEST_PASS = 180.0
"""Seconds. A pass may take as long as the sync period, but no longer than this."""

_LOGGED = 20

_LASTING = timedelta(seconds=30)
"""Time after which a problem leads to an Event; a roll-out or a new node disturbs only for a moment."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class LastingProblems:
    """Events about ManagedResources whose objects have lasting problems.

    The next condition overwrites the previous one, and has only the first object.
    """

    def __init__(self, recorder: EventRecorder, *, now: Callable[[], datetime] = utc_now) -> None:
        self._recorder = recorder
        self._now = now
        self._since: dict[Key, datetime | None] = {}
        """Time of the first finding; None once there was an Event."""

    def note(self, managed_resource: Object, condition: Condition, count: int) -> None:
        """Note the number of objects with findings in a check."""
        name = key(managed_resource)
        if not count:
            self.forget(name)
            return
        now = self._now()
        since = self._since.setdefault(name, now)
        if since is not None and now - since >= _LASTING:
            self._since[name] = None
            more = f" (and {count - 1} more)" if count > 1 else ""
            self._recorder.event(managed_resource, "Warning", condition.reason, condition.message + more)

    def forget(self, name: Key) -> None:
        self._since.pop(name, None)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    check: Check
    inputs: Inputs = field(default_factory=Inputs)
    status: StatusWriter
    store: Store[Object]
    """Cache of the ManagedResources."""
    resource_class: str
    sync_period: float
    while_failing: bool = False
    """Whether objects are checked while others of the same ManagedResource cannot be applied."""
    lasting: LastingProblems | None = None
    """None for no Events about lasting problems."""
    now: Callable[[], datetime] = utc_now
    _logged: dict[Key, tuple[str, ...]] = field(default_factory=dict, init=False)

    async def reconcile(self, name: Key) -> Result:
        self.inputs.begin(name)
        managed_resource = self.store.get(name)
        eligible = Eligibility.STOP if managed_resource is None else self._eligibility(managed_resource)
        if managed_resource is None or eligible is Eligibility.STOP:
            self.inputs.changed(name)
            self._logged.pop(name, None)
            if self.lasting is not None:
                self.lasting.forget(name)
            await self.check.forget(name)
            return Done()
        is_settled = eligible is Eligibility.WAIT
        if not is_settled:
            with suppress(NotKnown):
                found = await self._check(managed_resource, only_applied=eligible is Eligibility.CHECK_APPLIED)
                is_settled = not found.findings and eligible is Eligibility.CHECK and self._is_settled(managed_resource)
        seconds = self.sync_period * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load
        return RequeueAfter(seconds, RESYNC, partial(self.inputs.are_unchanged, name) if is_settled else None)

    def is_waiting(self, managed_resource: Object) -> bool:
        """Whether a pass would do nothing, since objects are not applied yet; the event of that leads to one.

        Without such passes, a new ManagedResource of ten objects has two passes of health and progress together instead
        of six.
        """
        return self._eligibility(managed_resource) is Eligibility.WAIT

    def waits(self, name: Key) -> bool:
        managed_resource = self.store.get(name)
        return managed_resource is not None and self.is_waiting(managed_resource)

    def _is_settled(self, managed_resource: Object) -> bool:
        """Whether the watches alone show that the ManagedResource has no problem."""
        advice = self.advice(managed_resource)
        return advice is not None and advice.is_settled

    async def _check(self, managed_resource: Object, *, only_applied: bool) -> Found:
        """Check the objects, write the condition, and return the findings.

        Raises:
            NotKnown: there is nothing to check.
        """
        name = key(managed_resource)
        looked_at = references(managed_resource, with_pending=only_applied)
        found = await self._look(name, looked_at, only_applied=only_applied)
        condition = self.check.condition(found, only_applied=only_applied)
        self._log(name, condition, found.findings)
        if self.lasting is not None:
            self.lasting.note(managed_resource, condition, len(found.findings))
        await self._write(managed_resource, condition)
        return found

    def findings(self, name: Key) -> int:
        """Number of objects of a ManagedResource with findings in the last check."""
        return len(self._logged.get(name, ()))

    def advice(self, managed_resource: Object) -> Advice | None:
        """Return the condition known from memory, to be added to another controller's write; None if it is unknown."""
        eligible = self._eligibility(managed_resource)
        if eligible in {Eligibility.STOP, Eligibility.WAIT}:
            return None
        only_applied = eligible is Eligibility.CHECK_APPLIED
        looked_at = references(managed_resource, with_pending=only_applied)
        try:
            found = self.check.known(key(managed_resource), looked_at, only_applied=only_applied)
        except NotKnown as unknown:
            return Advice(lambda status: status, is_settled=False) if unknown.is_coming else None
        condition = self.check.condition(found, only_applied=only_applied)

        def compute(status: Object) -> Object:
            conditions = conditions_to_write({**managed_resource, "status": status}, condition, now=self.now())
            return status if conditions is None else {**status, "conditions": conditions}

        return Advice(compute, is_settled=not found.findings)

    def _eligibility(self, managed_resource: Object) -> Eligibility:
        return eligibility(managed_resource, resource_class=self.resource_class, while_failing=self.while_failing)

    async def _look(self, name: Key, looked_at: Sequence[Reference], *, only_applied: bool) -> Found:
        seconds = min(self.sync_period, LONGEST_PASS) / 2  # leaves time for the write
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self.check.look(name, looked_at, only_applied=only_applied)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ReconcileError(f"the objects could not be checked within {seconds:g} seconds") from error

    def _log(self, name: Key, condition: Condition, findings: list[Finding]) -> None:
        """Log all findings, since the condition has only the first; nothing if they were logged already."""
        messages = tuple(finding.message for finding in findings)
        if self._logged.get(name, ()) == messages:
            return
        if messages:
            self._logged[name] = messages
        else:
            del self._logged[name]
        log.info(
            "The state of objects changed", condition=condition.type, findings=messages[:_LOGGED], count=len(messages)
        )

    async def _write(self, managed_resource: Object, condition: Condition) -> None:
        eligible, looked_at = self._eligibility(managed_resource), _listed(managed_resource)
        # The look may have taken a while, and the other controllers write the same status.
        managed_resource = self.store.get(key(managed_resource)) or managed_resource

        def compute(status: Object) -> Object:
            present = {**managed_resource, "status": status}
            if self._eligibility(present) is not eligible or _listed(present) != looked_at:
                return status  # the condition is about what was; an event brings the next check
            conditions = conditions_to_write(present, condition, now=self.now())
            return status if conditions is None else {**status, "conditions": conditions}

        try:
            await self.status.update_if_exists(managed_resource, compute)
        except KubeError as error:
            raise ReconcileError(f"could not update the ManagedResource status: {error}") from error


def _listed(managed_resource: Object) -> object:
    status = managed_resource.get("status") or {}
    return status.get("resources"), status.get("pendingResources")
