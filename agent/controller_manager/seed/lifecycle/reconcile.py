"""One pass over a Seed: whether its Lease is renewed in time, and what follows if it is not.

Nothing is polled. While all is well, a timer goes off when the Lease as it was known last would lapse, and is set again
if it has been renewed meanwhile; that is all that renewals cost. Before a Seed is said to be lost, the API server is
asked for its Lease: that a watch reports no renewal does not mean that there was none. A Seed that is lost is looked at
when its Lease is renewed, when its Shoots change, and at the times from which more is to be done about it.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import structlog

from agent.controller_manager.common.api import BY_SEED
from agent.controller_manager.common.seed_conditions import SeedConditions
from agent.controller_manager.context import Context
from agent.controller_manager.seed.lifecycle import rules
from config.controller_manager.controllers import Seed as Settings
from gardener import keys
from gardener.api.garden import MANAGED_SEEDS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seeds import LEASE_NAMESPACE
from kube.errors import KubeError, NotFound
from kube.objects import Key, Object, annotations
from kube.resources import LEASES
from kube.runtime.cache import Store
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.status import StatusWriter
from kube.runtime.yielding import Yielding

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_AT_ONCE = 20
_ASKED_AGAIN = timedelta(minutes=10)


class Reconciler:
    def __init__(
        self,
        context: Context,
        *,
        seeds: Store[Object],
        leases: Store[datetime | None],
        managed_seeds: Store[Object],
        shoots: Store[Object],
    ) -> None:
        self._settings: Settings = context.config.controllers.seed
        self._client = context.garden.client
        self._api = context.api
        self._clock: Callable[[], datetime] = context.clock
        self._seeds = seeds
        self._leases = leases
        self._managed_seeds = managed_seeds
        self._shoots = shoots
        self._conditions = SeedConditions(context, seeds)
        self._statuses = StatusWriter(context.garden.client, shoots)
        self._asked: dict[str, datetime] = {}
        """When a new certificate was asked for last, by Seed."""

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None or not rules.is_reported(seed):
            self._asked.pop(key.name, None)
            return Done()
        lapses = self._lapses(key.name)
        if lapses is None or lapses <= self._clock():
            await self._look(key.name)
            lapses = self._lapses(key.name)
        if lapses is not None and lapses > self._clock():
            self._asked.pop(key.name, None)
            await self._conditions.sum_up(seed)
            return self._at(lapses)
        if not rules.is_unknown(seed):
            log.info("The Seed is lost: its Lease has not been renewed in time")
        # The gardenlet may be back since its Lease was read.
        seed = await self._conditions.write(seed, rules.LOST)
        if seed is None or not rules.is_unknown(seed):
            return Done()
        times, errors = [], list[Exception]()
        try:
            times.append(await self._ask_for_certificate(key.name, seed))
        except KubeError as error:
            errors.append(error)
        abandoned = self._abandoned_at(seed)
        if abandoned is not None and abandoned > self._clock():
            times.append(abandoned)
        else:
            errors += await self._abandon_shoots(key.name)
        if errors:
            raise ExceptionGroup("not all is said about a lost Seed", errors)
        return self._at(*times)

    # --- times

    def _lapses(self, seed: str) -> datetime | None:
        renewed = self._leases.get(Key(LEASE_NAMESPACE, seed))
        return rules.lapses(renewed, monitor_period=self._settings.monitor_period)

    async def _look(self, seed: str) -> None:
        """Have the cache know of the Lease as it is: renewals may come late. Raises KubeError."""
        lease = await self._client.find(LEASES, seed, namespace=LEASE_NAMESPACE)
        if lease is not None:
            self._leases.observe(lease)

    def _is_lost(self, name: str) -> bool:
        lapses, seed = self._lapses(name), self._seeds.get(Key("", name))
        return seed is not None and rules.is_unknown(seed) and (lapses is None or lapses <= self._clock())

    def _abandoned_at(self, seed: Object) -> datetime | None:
        """When its Shoots are said to be unknown."""
        since = rules.unknown_since(seed)
        return None if since is None else since + timedelta(seconds=self._settings.patience_with_shoots)

    def _at(self, *times: datetime | None) -> Result:
        """At the first of these times."""
        known = [time for time in times if time is not None]
        if not known:
            return Done()
        return RequeueAfter(max((min(known) - self._clock()).total_seconds(), 0.0))

    # --- what is done

    async def _ask_for_certificate(self, name: str, seed: Object) -> datetime | None:
        """A managed Seed gets a new one with the next reconciliation. Returns when to look again."""
        now, expires = self._clock(), rules.certificate_expires(seed)
        if expires is None or expires > now:
            return expires
        managed_seed = self._managed_seeds.get(Key(NAMESPACE, name))
        if managed_seed is None:
            return None
        again = self._asked[name] + _ASKED_AGAIN if name in self._asked else now
        if again <= now:
            if keys.OPERATION not in annotations(managed_seed):
                log.info("The certificate of the gardenlet has expired; its ManagedSeed is to be reconciled")
                await self._api.operate(MANAGED_SEEDS, name, keys.OPERATION_RECONCILE, namespace=NAMESPACE)
            self._asked[name] = now
            again = now + _ASKED_AGAIN
        return again

    async def _abandon_shoots(self, seed: str) -> list[Exception]:
        """Returns what went wrong: one Shoot that can't be written does not keep the others from it."""
        now, yielding = self._clock(), Yielding()
        shoots = []
        for shoot in self._shoots.values_by_index(BY_SEED, seed):
            if rules.seed_of(shoot) == seed and not rules.is_abandoned(shoot, now=now):
                shoots.append(shoot)
            await yielding.after_long()
        if shoots:
            log.info("The Shoots of a lost Seed are said to be unknown", count=len(shoots))
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def abandon(shoot: Object) -> KubeError | None:
            async with at_once:
                # With many Shoots this takes a while; what a gardenlet that is back says must not be overwritten.
                if not self._is_lost(seed):
                    return None
                try:
                    await self._statuses.update(shoot, partial(rules.abandoned, shoot, now=now))
                except NotFound:
                    pass
                except KubeError as error:
                    return error
                return None

        outcomes = await asyncio.gather(*map(abandon, shoots))
        return [outcome for outcome in outcomes if outcome is not None]
