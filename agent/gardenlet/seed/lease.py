"""The controller `seed-lease`: the heartbeat of the Seed.

Every few seconds the health of the seed's API server is checked, and the Seed's Lease in the garden is renewed: one
request each. The condition GardenletReady is written when another client has changed it.

The Lease is patched; it is created if the API server has none. Without a Seed there is no Lease, and the process is
healthy. A failed renewal makes it unhealthy at once: the probe reports that the seed or the garden can't be reached,
and its threshold decides for how long that is tolerated.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

import structlog

from agent.gardenlet.common.health import HealthState
from agent.gardenlet.common.metrics import gardenlet_cluster_reachable
from agent.gardenlet.common.views import SEEDS_VIEW
from agent.gardenlet.context import Context
from gardener.api.garden import SEEDS
from gardener.conditions import GARDENLET_READY
from gardener.garden.seeds import LEASE_NAMESPACE
from kube.clock import format_micro_time
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KubeError
from kube.objects import Key, Object, key, uid
from kube.repeats import Reminders
from kube.resources import LEASES
from kube.runtime.cache import Change, Store
from kube.runtime.client import Client
from kube.runtime.controller import ReconcileError, RepeatedError, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue
from kube.runtime.predicates import all_of, any_of, came, listed
from kube.runtime.status import StatusWriter

READY = Condition(GARDENLET_READY, "True", "GardenletReady", "Gardenlet is posting ready status.")
_MAX_BACKOFF = 2.0
_GRACE_SECONDS = 1.0
_LOG_SECONDS = 60.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def renewal(seed: Object, *, seconds: int, now: datetime) -> Object:
    """Patch for the Lease of a Seed."""
    name = key(seed).name
    return {
        "metadata": {"ownerReferences": [SEEDS.reference(name=name, uid=uid(seed))]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": seconds, "renewTime": format_micro_time(now)},
    }


def with_ready(status: Object, *, now: datetime) -> Object:
    """Status of a Seed whose gardenlet renews its Lease."""
    return {**status, "conditions": with_conditions(conditions_of({"status": status}), [READY], now=now)}


def declare(context: Context) -> ControlLoop:
    settings, own = context.config.controllers.seed, Key("", context.seed_name)
    seconds = settings.lease_resync_seconds
    loop = ControlLoop(
        "seed-lease",
        kind=SEEDS,
        max_backoff=_MAX_BACKOFF,
        # The pass has a shorter limit of its own, so that it can report the cause.
        time_limit=seconds + _GRACE_SECONDS,
        initial_keys=[own],
    )
    is_own: Callable[[Change[Object]], bool] = lambda change: change.key == own  # noqa: E731
    seeds = loop.watch(context.garden.caches, SEEDS_VIEW, enqueue(when=all_of(is_own, any_of(came, listed))))
    garden = context.garden.client.without_limit()
    return loop.reconciled_by(
        Reconciler(
            seed=context.seed.client.without_limit(),
            garden=garden,
            seeds=seeds,
            statuses=context.seed_statuses(seeds),
            health=context.health,
            seconds=seconds,
            clock=context.clock,
        )
    )


@contextmanager
def _reaching(cluster: str) -> Iterator[None]:
    """Record in the metric whether the API server of a cluster responds."""
    reachable = gardenlet_cluster_reachable.labels(cluster)
    try:
        yield
    except (KubeError, asyncio.CancelledError):
        reachable.set(0)
        raise
    reachable.set(1)


@dataclass(eq=False, kw_only=True, slots=True)
class Reconciler:
    """Reconciler of the Lease.

    Args:
        seed, garden: clients without a rate limit: a heartbeat waits for no other requests.
        seconds: between two renewals, and the time limit of one.
    """

    seed: Client
    garden: Client
    seeds: Store[Object]
    statuses: StatusWriter
    health: HealthState
    seconds: int
    clock: Callable[[], datetime]
    reminders: Reminders = field(default_factory=lambda: Reminders(_LOG_SECONDS))
    """Limits repeated logs: a garden may be down for hours, and is tried every few seconds."""
    _is_missed: bool = False
    _is_failing: bool = False

    async def reconcile(self, name: Key) -> Result:
        try:
            async with asyncio.timeout(self.seconds):
                await self._renew(name)
        except (KubeError, TimeoutError) as error:
            problem = str(error) or f"not renewed within {self.seconds} seconds"
            self.health.fail(f"the Lease {LEASE_NAMESPACE}/{name} in the garden can't be renewed: {problem}")
            self._is_failing = True
            kind = ReconcileError if self.reminders.is_due(problem) else RepeatedError
            raise kind(f"heartbeat of seed {name}: {problem}") from error
        self.health.confirm()
        if self._is_failing:
            log.info("The Lease of the Seed is renewed again")
        self._is_failing = False
        if (seed := self.seeds.get(name)) is not None:
            await self._report(seed)
        return RequeueAfter(self.seconds)

    async def _renew(self, name: Key) -> None:
        """Renew the Lease.

        Raises:
            TimeoutError: it took too long.
        """
        with _reaching("seed"):
            await self.seed.request("GET", "/healthz")
        seed = self.seeds.get(name)
        if seed is None:
            if not self._is_missed:
                log.info("The Seed does not exist; its Lease is not renewed until it does", seed=name.name)
            self._is_missed = True
            return
        self._is_missed = False
        body = renewal(seed, seconds=self.seconds, now=self.clock())
        with _reaching("garden"):
            await self._write(name, body)

    async def _write(self, name: Key, body: Object) -> None:
        if await self.garden.patch_if_exists(LEASES, Key(LEASE_NAMESPACE, name.name), body) is None:
            meta = body["metadata"] | {"name": name.name, "namespace": LEASE_NAMESPACE}
            await self.garden.create(LEASES, {**LEASES.type_meta, **body, "metadata": meta})

    async def _report(self, seed: Object) -> None:
        compute = partial(with_ready, now=self.clock())
        if compute(seed.get("status") or {}) != (seed.get("status") or {}):
            await self.statuses.update_if_exists(seed, compute)
