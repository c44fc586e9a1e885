"""One pass over a Shoot: whether its last operation met a rate limit, and is due to be retried.

How often in a row is counted in memory: a new leader begins anew.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent.controller_manager.shoot.retry.rules import MOST_RETRIES, due, is_over
from gardenapi.api import GardenApi
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.garden.shoots import met_rate_limit
from kube.errors import NotFound
from kube.objects import Key, Object, annotations, metadata
from kube.runtime.cache import Store
from kube.runtime.controller import Done, RequeueAfter, Result

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    api: GardenApi
    shoots: Store[Object]
    period: timedelta
    jitter: float
    """Seconds, at most; so that not all that met the same limit come back at once."""
    clock: Callable[[], datetime]
    retries: dict[Key, int] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or is_over(shoot):
            self.retries.pop(key, None)
        if shoot is None or not met_rate_limit(shoot):
            return Done()
        retries = self.retries.get(key, 0)
        if retries >= MOST_RETRIES:
            log.warning("A Shoot is not retried any more: it met a rate limit each time", retries=retries)
            return Done()
        when, now = due(shoot, retries=retries, period=self.period), self.clock()
        if when is not None and when >= now:
            return RequeueAfter((when - now).total_seconds() + random.uniform(0, self.jitter))  # noqa: S311
        if annotations(shoot).get(keys.OPERATION) != keys.OPERATION_RETRY:
            await self._retry(key, shoot)
            self.retries[key] = retries + 1
        return Done()

    async def _retry(self, key: Key, shoot: Object) -> None:
        version = metadata(shoot)["resourceVersion"]
        try:
            written = await self.api.operate(
                SHOOTS, key.name, keys.OPERATION_RETRY, namespace=key.namespace, version=version
            )
        except NotFound:
            return
        self.shoots.observe(written)
        log.info("Retried a Shoot that met a rate limit")
