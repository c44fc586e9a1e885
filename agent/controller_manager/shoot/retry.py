"""The controller `shoot-retry`: retries operations that failed because of a rate limit.

The period before a retry doubles with each retry in a row. These are counted in memory: a new leader starts with the
first period again.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent.controller_manager.common.api import SHOOTS_VIEW
from agent.controller_manager.context import Context
from gardenapi.api import GardenApi
from gardener import keys
from gardener.api.garden import SHOOTS
from gardener.error_codes import INFRA_RATE_LIMITS_EXCEEDED
from gardener.garden.shoots import FAILED, SUCCEEDED, error_codes, last_operation, met_rate_limit
from kube.clock import FirstSeen, seconds_until, time_or_none
from kube.errors import NotFound
from kube.objects import Key, Object, metadata, uid
from kube.runtime.cache import Store
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import any_of, changed, listed

MOST_RETRIES = 10
"""Maximum number of retries in a row: further ones would meet the limit again."""
LONGEST_PERIOD = timedelta(hours=6)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def declare(context: Context) -> ControlLoop:
    settings, garden = context.config.controllers.shoot_retry, context.garden
    loop = ControlLoop("shoot-retry", kind=SHOOTS, workers=settings.concurrent_syncs)
    shoots = loop.watch(garden.caches, SHOOTS_VIEW, enqueue(when=any_of(listed, changed(progress))))
    return loop.reconciled_by(
        Reconciler(
            api=context.api,
            shoots=shoots,
            period=timedelta(seconds=settings.retry_period),
            jitter=settings.retry_jitter_period,
            clock=context.clock,
        )
    )


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    api: GardenApi
    shoots: Store[Object]
    period: timedelta
    jitter: float
    """Maximum jitter in seconds, so that not all Shoots that met the same limit come back at once."""
    clock: Callable[[], datetime]
    retries: dict[Key, int] = field(default_factory=dict)
    failed: FirstSeen[Key] = field(default_factory=FirstSeen)
    """Times of the failures, reported by gardenlets, whose clocks may be ahead."""

    async def reconcile(self, key: Key) -> Result:
        shoot = self.shoots.get(key)
        if shoot is None or is_over(shoot):
            self.retries.pop(key, None)
            self.failed.forget(key)
        if shoot is None or not met_rate_limit(shoot):
            return Done()
        retries = self.retries.get(key, 0)
        if retries >= MOST_RETRIES:
            log.warning("A Shoot is not retried any more: each attempt exceeded a rate limit", retries=retries)
            return Done()
        now, failed_at, pause = self.clock(), failure_time(shoot), pause_after(retries, period=self.period)
        when = failed_at and self.failed.of(key, failed_at, now=now) + pause
        if when is not None and when >= now:
            left, jitter = seconds_until(when, now, longest=pause.total_seconds()), random.uniform(0, self.jitter)  # noqa: S311
            return RequeueAfter(left + jitter)
        await self._retry(key, shoot)
        self.retries[key] = retries + 1
        return Done()

    async def _retry(self, key: Key, shoot: Object) -> None:
        version = metadata(shoot)["resourceVersion"]
        try:
            written = await self.api.operate(SHOOTS, key, keys.OPERATION_RETRY, version=version)
        except NotFound:
            return
        self.shoots.observe(written)
        log.info("Retried a Shoot that failed because of a rate limit")


def is_over(shoot: Object) -> bool:
    """Whether the operation has ended in another way, so that the next failure is the first one again."""
    return last_operation(shoot).get("state") in {SUCCEEDED, FAILED} and INFRA_RATE_LIMITS_EXCEEDED not in error_codes(
        shoot
    )


def progress(shoot: Object) -> tuple[object, ...]:
    """State whose change leads to a pass over the Shoot."""
    failed_at = last_operation(shoot).get("lastUpdateTime") if met_rate_limit(shoot) else None
    return uid(shoot), failed_at, is_over(shoot)


def failure_time(shoot: Object) -> datetime | None:
    """Time of the failure; None if unknown: the next retry is due at once."""
    return time_or_none(last_operation(shoot).get("lastUpdateTime"))


def pause_after(retries: int, *, period: timedelta) -> timedelta:
    return max(min(period * (1 << retries), LONGEST_PERIOD), period)
