"""Input of a pass over a SeedAutoscaler, from caches except for one check."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agent.controller_manager.common.api import BY_NAMESPACE, BY_SCHEDULING, BY_SEED, BY_TARGET, WAITING, target_of
from agent.controller_manager.common.seeds import is_used
from agent.controller_manager.seed_autoscaler.rules.loads import Observation
from agent.controller_manager.seed_autoscaler.rules.pending import counts_from, helped_by, new_seed
from agent.controller_manager.seed_autoscaler.rules.settings import Waiting
from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES
from gardener.garden import scheduling
from gardener.garden.managed_seed_sets import Replica, membership_of
from gardener.garden.profiles import chosen_from
from gardener.garden.scheduling import RegionConfig, SeedInfo, Strategy
from kube.objects import Key, Object, is_deleting, key
from kube.runtime.cache import Store
from kube.runtime.client import Client

_AT_ONCE = 20
"""Number of Shoots until other tasks get a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Shoots that wait for a Seed of a set.

    Attributes:
        count: number of Shoots that have waited for long enough.
        more_at: time at which the next one has; None if there is no other.
    """

    count: int = 0
    more_at: datetime | None = None


@dataclass(eq=False, kw_only=True, slots=True)
class ScalingInputs:
    client: Client
    autoscalers: Store[Object]
    sets: Store[Object]
    shoots: Store[Object]
    managed_seeds: Store[Object]
    seeds: Store[Object]
    profiles: Store[Object]
    own_profiles: Store[Object]
    """NamespacedCloudProfiles."""
    regions: Store[RegionConfig] | None
    """None if distances do not matter."""
    strategy: Strategy

    def rivals(self, autoscaler: Object) -> Sequence[Key]:
        """Other SeedAutoscalers of the same set."""
        same = self.autoscalers.by_index(BY_TARGET, target_of(autoscaler))
        return [own for own, each in same if own != key(autoscaler) and not is_deleting(each)]

    def replicas(self, seed_set: Object) -> Sequence[Replica]:
        """Replicas of the set.

        Raises:
            ValueError: the selector can't be evaluated.
        """
        nearby = self.shoots.values_by_index(BY_NAMESPACE, key(seed_set).namespace)
        return [self._replica(shoot) for shoot in membership_of(seed_set, nearby).owned]

    def _replica(self, shoot: Object) -> Replica:
        own = key(shoot)
        return Replica(shoot=shoot, managed_seed=self.managed_seeds.get(own), seed=self.seeds.get(Key("", own.name)))

    def usage(self, seed: str) -> int:
        return self.shoots.count(BY_SEED, seed)

    async def pending(self, autoscaler: Object, now: datetime) -> Pending:
        waiting = Waiting.of(autoscaler)
        if not waiting.included:
            return Pending()
        times = [
            (counts_from(shoot, waiting.grace), shoot) for shoot in self.shoots.values_by_index(BY_SCHEDULING, WAITING)
        ]
        due = [shoot for time, shoot in times if time is not None and time <= now]
        later = [time for time, _ in times if time is not None and time > now]
        count = await self._helped(due, target_of(autoscaler).name, now) if due else 0
        return Pending(count=count, more_at=min(later, default=None))

    async def _helped(self, shoots: Sequence[Object], seed_set: str, now: datetime) -> int:
        new_seeds, garden, count = self._new_seeds(), self._scheduling(now), 0
        for number, shoot in enumerate(shoots):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            count += helped_by(shoot, self._profile(shoot), garden, new_seeds) == seed_set
        return count

    def _new_seeds(self) -> Sequence[SeedInfo]:
        """New Seeds of all sets that grow for waiting Shoots."""
        willing = [target_of(each) for _, each in self.autoscalers.items() if Waiting.of(each).included]
        sets = (self.sets.get(own) for own in sorted(set(willing)))
        return [new_seed(each) for each in sets if each is not None and not is_deleting(each)]

    def _scheduling(self, now: datetime) -> scheduling.SeedCandidates:
        seeds = sorted((SeedInfo.of(seed) for _, seed in self.seeds.items()), key=lambda seed: seed.name)
        return scheduling.SeedCandidates(
            seeds=seeds,
            usage=self.usage,
            now=now,
            region_configs=[] if self.regions is None else [each for _, each in self.regions.items()],
            strategy=self.strategy,
        )

    def _profile(self, shoot: Object) -> Object | None:
        known = {CLOUD_PROFILES: self.profiles, NAMESPACED_CLOUD_PROFILES: self.own_profiles}
        return chosen_from(shoot, lambda resource, name: known[resource].get(name))

    async def checked(self, seen: Observation) -> Observation:
        """Observation checked in the API server: Seeds that are used after all can't be removed.

        Raises:
            KubeError: a check failed.
        """
        seeds = [
            replace(seed, is_deletable=not await is_used(self.client, seed.name)) if seed.is_deletable else seed
            for seed in seen.seeds
        ]
        return replace(seen, seeds=seeds)
