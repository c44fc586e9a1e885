"""One pass over a Bastion: whether there is still a use for it, and its heartbeat.

What is known of Shoots may be a moment old, and a Bastion is mostly made right after something happened to its Shoot.
So before one is deleted for its Shoot's sake, the API server is asked for that Shoot.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from agent.controller_manager.bastion.rules import TIME_TO_LIVE, Bastion, end, why_useless
from gardener import keys
from gardener.api.garden import BASTIONS, SHOOTS
from kube.clock import format_time
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object
from kube.runtime.cache import Store
from kube.runtime.client import Client
from kube.runtime.controller import Done, ReconcileError, RequeueAfter, Result
from kube.runtime.status import StatusWriter

_SHORTEST_PAUSE = 1.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


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
        return RequeueAfter(max((until - now).total_seconds(), _SHORTEST_PAUSE))

    async def _why_useless(self, bastion: Bastion) -> str:
        if not why_useless(bastion, self.shoots.get(bastion.shoot)):
            return ""
        try:
            live = await self.client.find(SHOOTS, bastion.shoot.name, namespace=bastion.shoot.namespace)
        except KubeError as error:
            raise ReconcileError(f"could not get shoot {bastion.shoot}: {error}") from error
        return why_useless(bastion, live)

    async def _delete(self, key: Key, bastion: Bastion, reason: str) -> Result:
        """As it was seen: one that has just got a heartbeat is looked at again."""
        try:
            await self.client.delete(
                BASTIONS, key.name, namespace=key.namespace, uid=bastion.uid, resource_version=bastion.version
            )
        except NotFound:
            return Done()
        log.info("Deleted a Bastion", reason=reason)
        return Done()

    async def _record_heartbeat(self, key: Key, bastion: Bastion, now: datetime) -> None:
        """In two writes, since status and metadata can't be written together; the second ends what asks for both."""
        status = {
            "lastHeartbeatTimestamp": format_time(now),
            "expirationTimestamp": format_time(now + TIME_TO_LIVE),
        }
        meta = {"namespace": key.namespace, "name": key.name, "resourceVersion": bastion.version}
        written = await self.status.write({"metadata": meta}, status)
        if bastion.is_kept_alive:
            version = written["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version, "annotations": {keys.OPERATION: None}}}
            self.bastions.observe(await self.client.patch(BASTIONS, key.name, body, namespace=key.namespace))
