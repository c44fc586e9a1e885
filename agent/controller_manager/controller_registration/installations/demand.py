"""What the objects of the garden need of each Seed, kept up to date with each change of one of them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from agent.controller_manager.common.api import BY_NAMESPACE
from agent.controller_manager.common.rules.garden_secrets import GardenSecret
from agent.controller_manager.controller_registration.installations.counted import Counted
from agent.controller_manager.controller_registration.installations.needs import ShootNeeds, needs_of_shoot
from gardener import keys
from gardener.garden.domains import NAMESPACE, Domain
from kube.objects import Key, Object, spec, text
from kube.paths import at
from kube.runtime.cache import Change, Store


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a BackupEntry."""

    seed: str
    bucket: str

    @classmethod
    def of(cls, entry: Object) -> "Entry":
        return cls(text(spec(entry).get("seedName")), text(spec(entry).get("bucketName")))


class Demand:
    """The methods for changes return the Seeds of which something else is needed now."""

    def __init__(self, *, secrets: Store[GardenSecret | None], shoots: Store[Object]) -> None:
        self._secrets = secrets
        self._shoots = shoots
        self._of_shoots: Counted[ShootNeeds] = Counted()
        self._of_entries: Counted[str] = Counted()
        self._default_domains: list[Domain] = []

    # --- reading

    def of_shoots(self, seed: str) -> Collection[ShootNeeds]:
        """The different needs of the Shoots that are on the Seed, or are leaving it."""
        return self._of_shoots.of(seed)

    def buckets_of_entries(self, seed: str) -> Collection[str]:
        """The names of the BackupBuckets that its BackupEntries are in."""
        return self._of_entries.of(seed)

    def seeds_with_entries_in(self, bucket: str) -> set[str]:
        return self._of_entries.groups_with(bucket)

    def of_shoot(self, shoot: Object) -> ShootNeeds:
        return needs_of_shoot(shoot, self._default_domains)

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
        """To be called when a Secret of the garden has changed: Shoots below a default domain need its provider."""
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


def seeds_of(shoot: Object) -> set[str]:
    """The Seed that it is on, and the one that it leaves."""
    return {text(spec(shoot).get("seedName")), text(at(shoot, "status", "seedName"))} - {""}
