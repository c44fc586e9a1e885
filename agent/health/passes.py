"""One pass of a health controller over a ManagedResource: look at its objects, and tell what was found if it is new.

Mostly it has been told already: the writer of the status asks for `advice` whenever somebody writes, and what memory
tells goes along.
"""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from agent.health.findings import Finding, references
from agent.health.gate import Gate, gate
from agent.health.objects import NotKnown
from agent.health.verdicts import Verdict, conditions_to_write
from agent.health.walks import Walk
from agent.status import Advice, StatusWriter
from kube.cache import Store
from kube.controller import Done, ReconcileError, RequeueAfter, Result
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, key

LONGEST_PASS = 180.0
"""Seconds; a pass gets as long as the sync period is, but no longer than this."""

_LOGGED = 20

_LASTING = timedelta(seconds=30)
"""What lasts as long is told by an Event; a roll-out or a new node disturb for a moment."""

Complain = Callable[[Object, Verdict, int], None]
"""Called with a ManagedResource, and with the number of its objects that are not as they should be."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Passes:
    """Args: store: of the ManagedResources."""

    def __init__(
        self,
        *,
        walk: Walk,
        status: StatusWriter,
        store: Store[Object],
        resource_class: str,
        sync_period: float,
        now: Callable[[], datetime],
        complain: Complain | None = None,
    ) -> None:
        self._walk = walk
        self._status = status
        self._store = store
        self._resource_class = resource_class
        self._sync_period = sync_period
        self._now = now
        self._complain = complain
        self._logged: dict[Key, tuple[str, ...]] = {}
        self._bad_since: dict[Key, datetime | None] = {}
        """None once there was a complaint."""

    async def reconcile(self, name: Key) -> Result:
        managed_resource = self._store.get(name)
        if managed_resource is None or self._gate(managed_resource) is Gate.STOP:
            self._logged.pop(name, None)
            self._bad_since.pop(name, None)
            await self._walk.forget(name)
            return Done()
        if self._gate(managed_resource) is Gate.CHECK:
            findings = await self._findings(name, managed_resource)
            verdict = self._walk.verdict(findings)
            self._log(name, verdict, findings)
            self._complain_if_it_lasts(managed_resource, verdict, len(findings))
            await self._write(managed_resource, verdict)
        return RequeueAfter(self._sync_period * random.uniform(0.9, 1.1))  # noqa: S311 - spreads load

    def findings(self, name: Key) -> int:
        """How many objects of a ManagedResource were not as they should be when they were last looked at."""
        return len(self._logged.get(name, ()))

    def advice(self, managed_resource: Object) -> Advice | None:
        """What memory tells of it, to go along with what somebody else is about to write."""
        if self._gate(managed_resource) is not Gate.CHECK:
            return None
        try:
            finding = self._walk.first_finding(key(managed_resource), references(managed_resource))
        except NotKnown as unknown:
            return Advice(lambda status: status, is_settled=False) if unknown.is_coming else None
        verdict = self._walk.verdict([] if finding is None else [finding])

        def compute(status: Object) -> Object:
            conditions = conditions_to_write({**managed_resource, "status": status}, verdict, now=self._now())
            return status if conditions is None else {**status, "conditions": conditions}

        return Advice(compute, is_settled=finding is None)

    def _gate(self, managed_resource: Object) -> Gate:
        return gate(managed_resource, resource_class=self._resource_class)

    async def _findings(self, name: Key, managed_resource: Object) -> list[Finding]:
        seconds = min(self._sync_period, LONGEST_PASS) / 2  # leaves time for the write
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._walk.findings(name, references(managed_resource))
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ReconcileError(f"the objects could not be looked at within {seconds:g} seconds") from error

    def _log(self, name: Key, verdict: Verdict, findings: list[Finding]) -> None:
        """All findings, since the condition tells only the first; nothing if they were logged already."""
        messages = tuple(finding.message for finding in findings)
        if self._logged.get(name, ()) == messages:
            return
        if messages:
            self._logged[name] = messages
        else:
            del self._logged[name]
        log.info(
            "The state of objects changed", condition=verdict.type, findings=messages[:_LOGGED], count=len(messages)
        )

    def _complain_if_it_lasts(self, managed_resource: Object, verdict: Verdict, count: int) -> None:
        name, now = key(managed_resource), self._now()
        if self._complain is None or not count:
            self._bad_since.pop(name, None)
            return
        since = self._bad_since.setdefault(name, now)
        if since is not None and now - since >= _LASTING:
            self._bad_since[name] = None
            self._complain(managed_resource, verdict, count)

    async def _write(self, managed_resource: Object, verdict: Verdict) -> None:
        looked_at = (managed_resource.get("status") or {}).get("resources")
        # The look may have taken a while, and the other controllers write the same status.
        managed_resource = self._store.get(key(managed_resource)) or managed_resource

        def compute(status: Object) -> Object:
            present = {**managed_resource, "status": status}
            if self._gate(present) is not Gate.CHECK or status.get("resources") != looked_at:
                return status  # the verdict is about what was; an event brings the next check
            conditions = conditions_to_write(present, verdict, now=self._now())
            return status if conditions is None else {**status, "conditions": conditions}

        try:
            await self._status.update(managed_resource, compute)
        except NotFound:
            return  # gone meanwhile
        except KubeError as error:
            raise ReconcileError(f"could not update the ManagedResource status: {error}") from error
