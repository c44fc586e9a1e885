"""Requirements of garden objects to each Seed, updated with each change of one of them."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from agent.controller_manager.common.api import BY_NAMESPACE
from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.controller_registration.installations.requirements import (
    ShootRequirements,
    requirements_of_shoot,
)
from gardener import keys
from gardener.garden.domains import NAMESPACE, Domain
from gardener.garden.shoots import seeds_of
from kube.objects import Key, Object, spec, text
from kube.runtime.cache import Change, Store

V = TypeVar("V", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Entry:
    """Cached fields of a BackupEntry."""

    seed: str
    bucket: str

    @classmethod
    def of(cls, entry: Object) -> "Entry":
        return cls(text(spec(entry).get("seedName")), text(spec(entry).get("bucketName")))


@lru_cache(maxsize=4096)
def _interned(value: V) -> V:
    """Return the first one of equal values."""
    return value


class DistinctValues(Generic[V]):
    """Different values of the objects in a group.

    A Seed may have thousands of Shoots, most of which need the same extensions. Few Shoots change
    the set of needed extensions; so it is counted with each change, instead of being computed from all.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Counter[V]] = {}
        self._known: dict[Key, tuple[frozenset[str], V]] = {}

    def of(self, group: str) -> Collection[V]:
        """The different values in a group."""
        return self._groups.get(group, Counter()).keys()

    def groups_with(self, value: V) -> set[str]:
        return {group for group, counter in self._groups.items() if value in counter}

    def put(self, key: Key, groups: Iterable[str], value: V) -> set[str]:
        """Put an object into exactly these groups, and return the groups whose values have changed."""
        wanted = frozenset(groups), _interned(value)
        if self._known.get(key) == wanted:
            return set()
        gone = self._forget(key)
        come: set[tuple[str, V]] = set()
        if wanted[0]:
            self._known[key] = wanted
        for group in wanted[0]:
            counter = self._groups.setdefault(group, Counter())
            counter[value] += 1
            if counter[value] == 1:
                come.add((group, value))
        return {group for group, _ in gone ^ come}

    def remove(self, key: Key) -> set[str]:
        """Remove an object, and return the groups whose values have changed."""
        return {group for group, _ in self._forget(key)}

    def _forget(self, key: Key) -> set[tuple[str, V]]:
        """Remove the object, and return the values that no object of a group has any more."""
        gone: set[tuple[str, V]] = set()
        if key not in self._known:
            return gone
        groups, value = self._known.pop(key)
        for group in groups:
            counter = self._groups[group]
            counter[value] -= 1
            if not counter[value]:
                del counter[value]
                gone.add((group, value))
            if not counter:
                del self._groups[group]
        return gone


class SeedRequirements:
    """Requirements of all Seeds; the methods for changes return the Seeds whose requirements have changed."""

    def __init__(self, *, secrets: Store[GardenSecret | None], shoots: Store[Object]) -> None:
        self._secrets = secrets
        self._shoots = shoots
        self._of_shoots: DistinctValues[ShootRequirements] = DistinctValues()
        self._of_entries: DistinctValues[str] = DistinctValues()
        self._default_domains: list[Domain] = []

    # --- reading

    def of_shoots(self, seed: str) -> Collection[ShootRequirements]:
        """Different requirements of the Shoots that are on the Seed, or leave it."""
        return self._of_shoots.of(seed)

    def buckets_of_entries(self, seed: str) -> Collection[str]:
        """Names of the BackupBuckets of the BackupEntries."""
        return self._of_entries.of(seed)

    def seeds_with_entries_in(self, bucket: str) -> set[str]:
        return self._of_entries.groups_with(bucket)

    def of_shoot(self, shoot: Object) -> ShootRequirements:
        return requirements_of_shoot(shoot, self._default_domains)

    @property
    def internal_domain(self) -> Domain | None:
        return next(iter(self._domains(keys.ROLE_INTERNAL_DOMAIN)), None)

    # --- changes

    def shoot_changed(self, change: Change[Object]) -> set[str]:
        if change.new is None:
            return self._of_shoots.remove(change.key)
        return self._put_shoot(change.key, change.new)

    def entry_changed(self, change: Change[Entry]) -> set[str]:
        entry = change.new
        if entry is None or not entry.seed:
            return self._of_entries.remove(change.key)
        return self._of_entries.put(change.key, (entry.seed,), entry.bucket)

    def domains_changed(self) -> set[str]:
        """Update the default domains after a change of a garden Secret: Shoots below a default domain need its
        provider.
        """
        domains = sorted(self._domains(keys.ROLE_DEFAULT_DOMAIN), key=lambda each: (-each.priority, each.secret))
        if domains == self._default_domains:
            return set()
        self._default_domains = domains
        return {seed for key, shoot in self._shoots.items() for seed in self._put_shoot(key, shoot)}

    def _put_shoot(self, key: Key, shoot: Object) -> set[str]:
        return self._of_shoots.put(key, seeds_of(shoot), self.of_shoot(shoot))

    def _domains(self, role: str) -> Iterable[Domain]:
        for secret in self._secrets.values_by_index(BY_NAMESPACE, NAMESPACE):
            if secret is not None and secret.role == role and secret.domain is not None:
                yield secret.domain
