"""One pass over an Event: it is deleted, or looked at again when it is old enough."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kube.cache import Store
from kube.client import Client
from kube.controller import Done, RequeueAfter, Result
from kube.errors import NotFound
from kube.objects import Key
from kube.resources import EVENTS


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    client: Client
    events: Store[datetime | None]
    lifetime: timedelta
    clock: Callable[[], datetime]

    async def reconcile(self, key: Key) -> Result:
        last_seen = self.events.get(key)
        if last_seen is None:
            return Done()
        left = (last_seen + self.lifetime - self.clock()).total_seconds()
        if left > 0:
            return RequeueAfter(left)
        try:
            # One that is repeated at this moment stays.
            version = str(self.events.version(key))
            await self.client.delete(EVENTS, key.name, namespace=key.namespace, resource_version=version)
        except NotFound:
            pass
        return Done()
