"""One pass of a health controller over a ManagedResource: look at its objects, and tell what was found if it is new."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime

import structlog

from agent.health.findings import Finding, references
from agent.health.gate import Gate, gate
from agent.health.verdicts import Verdict, conditions_to_write
from agent.health.walks import Walk
from agent.status import StatusWriter
from kube.cache import Store
from kube.controller import Done, ReconcileError, RequeueAfter, Result
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, key

LONGEST_PASS = 180.0
"""Seconds; a pass gets as long as the sync period is, but no longer than this."""

_LOGGED = 20
_PATIENCE = 0.05
"""Seconds for which a write waits, so that both conditions can go out together."""

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
    ) -> None:
        self._walk = walk
        self._status = status
        self._store = store
        self._resource_class = resource_class
        self._sync_period = sync_period
        self._now = now
        self._logged: dict[Key, tuple[str, ...]] = {}

    async def reconcile(self, name: Key) -> Result:
        managed_resource = self._store.get(name)
        if managed_resource is None or self._gate(managed_resource) is Gate.STOP:
            self._logged.pop(name, None)
            await self._walk.forget(name)
            return Done()
        if self._gate(managed_resource) is Gate.CHECK:
            findings = await self._findings(name, managed_resource)
            verdict = self._walk.verdict(findings)
            self._log(name, verdict, findings)
            await self._write(managed_resource, verdict)
        return RequeueAfter(self._sync_period * random.uniform(0.9, 1.1))  # noqa: S311 - spreads load

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
            await self._status.update(managed_resource, compute, patience=_PATIENCE)
        except NotFound:
            return  # gone meanwhile
        except KubeError as error:
            raise ReconcileError(f"could not update the ManagedResource status: {error}") from error
