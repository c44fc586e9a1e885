"""The controller `seed-lifecycle`: detects that a Seed's Lease is not renewed in time, and handles the lost Seed.

Seeds         that come, are reported on, or get another phase
Leases        that come or go, and all of lost Seeds
ManagedSeeds  of lost Seeds, if they come
Shoots        of lost Seeds, whose status does not report it yet

Nothing is polled. While all is well, a timer fires when the last known Lease would lapse, and is set again if it has
been renewed meanwhile; that is all that renewals cost. Before a Seed is reported lost, its Lease is read from the API
server: a watch may miss a renewal. A lost Seed is checked when its Lease is renewed, when its Shoots change, and at the
times of further steps.

A Seed without any condition is new: its gardenlet is still to come. As soon as any condition is reported (for example,
that its extensions are not installed), a Lease that is not renewed means that the gardenlet is missing, also if it has
never been there.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

import structlog

from agent.controller_manager.common.api import BY_SEED, MANAGED_SEEDS_VIEW, SEEDS_VIEW, SHOOTS_VIEW
from agent.controller_manager.common.seeds import SeedConditions
from agent.controller_manager.context import Context
from config.controller_manager.controllers import Seed as Settings
from gardener import conditions, keys
from gardener.api.garden import MANAGED_SEEDS, SEEDS
from gardener.garden.domains import NAMESPACE
from gardener.garden.seeds import LEASE_NAMESPACE, phase_of
from gardener.garden.shoots import responsible_seed, workers
from kube.clock import FirstSeen, parse_time, seconds_until
from kube.conditions import Condition, conditions_of, with_conditions
from kube.errors import KubeError
from kube.objects import Key, Object, annotations, condition, key, mapping, resource_version, spec, text
from kube.paths import at, mappings_at
from kube.resources import LEASES
from kube.runtime.cache import Change, Store, View
from kube.runtime.controller import Done, RequeueAfter, Result
from kube.runtime.loop import ControlLoop, enqueue, enqueue_mapped
from kube.runtime.predicates import Predicate, all_of, any_of, changed, exists, listed
from kube.runtime.status import StatusWriter
from kube.runtime.yielding import Yielding

LOST = Condition(conditions.GARDENLET_READY, "Unknown", "SeedStatusUnknown", "Gardenlet stopped posting seed status.")
_SHOOT_REASON, _SHOOT_MESSAGE = "StatusUnknown", "Gardenlet stopped sending heartbeats."
_AT_ONCE = 20
_ASKED_AGAIN = timedelta(minutes=10)
QUIET = timedelta(seconds=10)
"""Time without changes of a Seed before its phase is corrected: others patch their own recent writes."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


def moment(value: object) -> datetime | None:
    """Parse a time; None if it is missing or invalid."""
    try:
        return parse_time(text(value))
    except ValueError:
        return None


def renewal_of(lease: Object) -> datetime | None:
    """Time of the last renewal of a Lease."""
    return moment(spec(lease).get("renewTime"))


def lapses(renewed: datetime | None, *, monitor_period: float) -> datetime | None:
    """Time at which the Seed is lost; None if its Lease has never been renewed."""
    return None if renewed is None else renewed + timedelta(seconds=monitor_period)


def is_reported(seed: Object) -> bool:
    """Whether any condition of the Seed is reported."""
    return bool(conditions_of(seed))


def is_unknown(seed: Object) -> bool:
    found = condition(seed, conditions.GARDENLET_READY)
    return found is not None and found.get("status") == "Unknown"


def unknown_since(seed: Object) -> datetime | None:
    """Time since which the Seed is unknown; None if it is not."""
    if not is_unknown(seed):
        return None
    return moment((condition(seed, conditions.GARDENLET_READY) or {}).get("lastTransitionTime"))


def certificate_expires(seed: Object) -> datetime | None:
    return moment(at(seed, "status", "clientCertificateExpirationTimestamp"))


# --- Shoots


def abandoned(shoot: Object, status: Object, *, now: datetime) -> Object:
    """Status of a Shoot of a lost Seed, equal to the present one if it reports that already."""
    is_workerless = not workers(spec(shoot))
    kinds = [each for each in conditions.SHOOT_CONDITIONS if not is_workerless or each != conditions.EVERY_NODE_READY]
    constraints = (conditions.HIBERNATION_POSSIBLE, conditions.MAINTENANCE_PRECONDITIONS_SATISFIED)
    return {
        **status,
        "conditions": with_conditions(mappings_at(status, "conditions"), _unknown(kinds), now=now),
        "constraints": with_conditions(mappings_at(status, "constraints"), _unknown(constraints), now=now),
    }


def is_abandoned(shoot: Object, *, now: datetime) -> bool:
    """Whether the status reports the lost Seed already."""
    status = mapping(shoot.get("status"))
    return abandoned(shoot, status, now=now) == status


def _unknown(kinds: Iterable[str]) -> list[Condition]:
    return [Condition(kind, "Unknown", _SHOOT_REASON, _SHOOT_MESSAGE) for kind in kinds]


_LEASES_VIEW = View(LEASES, renewal_of, namespace=LEASE_NAMESPACE)


def declare(context: Context) -> ControlLoop:
    settings, caches = context.config.controllers.seed, context.garden.caches
    loop = ControlLoop(
        "seed-lifecycle", kind=SEEDS, workers=settings.concurrent_syncs, max_backoff=settings.sync_period
    )
    seeds = loop.watch(caches, SEEDS_VIEW, enqueue(when=_triggers))
    leases = loop.watch(caches, _LEASES_VIEW, enqueue_mapped(partial(_of_lease, seeds)))
    managed_seeds = loop.watch(caches, MANAGED_SEEDS_VIEW, enqueue_mapped(partial(_of_managed_seed, seeds)))
    shoots = loop.watch(caches, SHOOTS_VIEW, enqueue_mapped(partial(_of_shoot, context, seeds)))
    return loop.reconciled_by(
        Reconciler(context, seeds=seeds, leases=leases, managed_seeds=managed_seeds, shoots=shoots)
    )


def _gardenlet_ready(seed: Object) -> Object | None:
    return condition(seed, conditions.GARDENLET_READY)


def _summed_up(seed: Object) -> str:
    return phase_of(conditions_of(seed))


_triggers: Predicate[Object] = all_of(
    exists,
    any_of(listed, changed(is_reported, _gardenlet_ready, certificate_expires, "status.phase", _summed_up)),
)


def _is_unknown(seeds: Store[Object], name: str) -> bool:
    seed = seeds.get(Key("", name))
    return seed is not None and is_unknown(seed)


def _of_lease(seeds: Store[Object], change: Change[datetime | None]) -> list[Key]:
    """Enqueue the Seed, except for regular renewals: its timer detects those."""
    name, old, new = change.key.name, change.old, change.new
    is_renewed = old is not None and new is not None and old < new
    return [] if is_renewed and not _is_unknown(seeds, name) else [Key("", name)]


def _of_managed_seed(seeds: Store[Object], change: Change[Object]) -> list[Key]:
    name = change.key.name
    is_new = change.old is None and change.key.namespace == NAMESPACE
    return [Key("", name)] if is_new and _is_unknown(seeds, name) else []


def _of_shoot(context: Context, seeds: Store[Object], change: Change[Object]) -> list[Key]:
    shoot = change.new
    if shoot is None or not _is_unknown(seeds, responsible_seed(shoot)):
        return []
    return [] if is_abandoned(shoot, now=context.clock()) else [Key("", responsible_seed(shoot))]


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
        self._renewed: FirstSeen[str] = FirstSeen()
        self._requested: dict[str, datetime] = {}
        """Time of the last request for a new certificate, by Seed."""
        self._unsummed: dict[str, tuple[int, datetime]] = {}
        """Seeds whose phase does not follow from their conditions: version, and time since it is known."""

    async def reconcile(self, key: Key) -> Result:
        seed = self._seeds.get(key)
        if seed is None or not is_reported(seed):
            self._requested.pop(key.name, None)
            self._unsummed.pop(key.name, None)
            self._renewed.forget(key.name)
            return Done()
        lapses = self._lapses(key.name)
        if lapses is None or lapses <= self._clock():
            await self._look(key.name)
            lapses = self._lapses(key.name)
        if lapses is not None and lapses > self._clock():
            self._requested.pop(key.name, None)
            return self._at(lapses, await self._sum_up(seed))
        if not is_unknown(seed):
            log.info("The Seed is lost: its Lease has not been renewed in time")
        # The gardenlet may be back since its Lease was read.
        seed = await self._conditions.write(seed, LOST)
        if seed is None or not is_unknown(seed):
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
            raise ExceptionGroup("conditions of a lost Seed or its Shoots could not be written", errors)
        return self._at(*times)

    async def _sum_up(self, seed: Object) -> datetime | None:
        """Correct the phase of a Seed that has not changed for a while; else return the time of the next check."""
        name, version, now = key(seed).name, resource_version(seed), self._clock()
        if self._conditions.is_summed_up(seed):
            self._unsummed.pop(name, None)
            return None
        known, since = self._unsummed.get(name, (0, now))
        if known != version:
            self._unsummed[name] = version, now
            return now + QUIET
        if since + QUIET > now:
            return since + QUIET
        await self._conditions.sum_up(seed)
        return None

    # --- times

    def _lapses(self, seed: str) -> datetime | None:
        renewed = self._leases.get(Key(LEASE_NAMESPACE, seed))
        if renewed is not None:
            # Detect the loss in time even if the clock of the gardenlet is ahead.
            renewed = self._renewed.of(seed, renewed, now=self._clock())
        return lapses(renewed, monitor_period=self._settings.monitor_period)

    async def _look(self, seed: str) -> None:
        """Add the present Lease to the cache: renewals may be observed late.

        Raises:
            KubeError: the read failed.
        """
        lease = await self._client.find(LEASES, Key(LEASE_NAMESPACE, seed))
        if lease is not None:
            self._leases.observe(lease)

    def _is_lost(self, name: str) -> bool:
        lapses, seed = self._lapses(name), self._seeds.get(Key("", name))
        return seed is not None and is_unknown(seed) and (lapses is None or lapses <= self._clock())

    def _abandoned_at(self, seed: Object) -> datetime | None:
        """Time at which its Shoots are reported unknown."""
        since = unknown_since(seed)
        return None if since is None else since + timedelta(seconds=self._settings.patience_with_shoots)

    def _at(self, *times: datetime | None) -> Result:
        """Requeue at the first of these times."""
        known = [time for time in times if time is not None]
        if not known:
            return Done()
        longest = max(self._settings.monitor_period, self._settings.patience_with_shoots, QUIET.total_seconds())
        return RequeueAfter(seconds_until(min(known), self._clock(), longest=longest))

    # --- actions

    async def _ask_for_certificate(self, name: str, seed: Object) -> datetime | None:
        """Reconcile a ManagedSeed, which renews the certificate. Return the time of the next check."""
        now, expires = self._clock(), certificate_expires(seed)
        if expires is None or expires > now:
            return expires
        managed_seed = self._managed_seeds.get(Key(NAMESPACE, name))
        if managed_seed is None:
            return None
        again = self._requested[name] + _ASKED_AGAIN if name in self._requested else now
        if again <= now:
            if keys.OPERATION not in annotations(managed_seed):
                log.info("The certificate of the gardenlet has expired; reconciling its ManagedSeed")
                await self._api.operate(MANAGED_SEEDS, Key(NAMESPACE, name), keys.OPERATION_RECONCILE)
            self._requested[name] = now
            again = now + _ASKED_AGAIN
        return again

    async def _abandon_shoots(self, seed: str) -> list[Exception]:
        """Report the Shoots as unknown, and return the errors: a failed write does not stop the others."""
        now, yielding = self._clock(), Yielding()
        shoots = []
        for shoot in self._shoots.values_by_index(BY_SEED, seed):
            if responsible_seed(shoot) == seed and not is_abandoned(shoot, now=now):
                shoots.append(shoot)
            await yielding.after_long()
        if shoots:
            log.info("Setting the conditions of the Shoots of a lost Seed to Unknown", count=len(shoots))
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def abandon(shoot: Object) -> KubeError | None:
            async with at_once:
                # With many Shoots this takes a while; reports of a gardenlet that is back must not be overwritten.
                if not self._is_lost(seed):
                    return None
                try:
                    await self._statuses.update_if_exists(shoot, partial(abandoned, shoot, now=now))
                except KubeError as error:
                    return error
                return None

        outcomes = await asyncio.gather(*map(abandon, shoots))
        return [outcome for outcome in outcomes if outcome is not None]
