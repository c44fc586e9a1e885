"""Data of a Seed for decisions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_CEILING

from gardener import keys
from gardener.conditions import BACKUP_BUCKETS_READY, GARDENLET_READY, IN_PROGRESS
from gardener.garden.scheduling.networks import SeedNetworks
from gardener.garden.shoots import seeds_of
from kube.clock import time_or_none
from kube.objects import (
    Object,
    annotations,
    condition,
    is_deleting,
    is_truthy,
    key,
    labels,
    mapping,
    mappings,
    spec,
    text,
    texts,
)
from kube.paths import at
from kube.quantities import parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedInfo:
    """Equal ones are interchangeable for every Shoot."""

    name: str
    labels: Mapping[str, str]
    provider: str
    region: str
    zones: int
    taints: tuple[tuple[str, str], ...]
    networks: SeedNetworks
    allocatable: int | None
    """Maximum number of Shoots; None if there is no limit."""
    problem: str
    """Reason why no Shoot may be scheduled to it, independent of the time; empty if it is usable."""
    progressing_since: datetime | None
    """Time since which the gardenlet's readiness is progressing; None if it is not progressing."""

    @classmethod
    def of(cls, seed: Object) -> "SeedInfo":
        wanted = spec(seed)
        gardenlet = mapping(condition(seed, GARDENLET_READY))
        is_progressing = gardenlet.get("status") == IN_PROGRESS
        return cls(
            name=key(seed).name,
            labels=labels(seed),
            provider=text(at(wanted, "provider", "type")),
            region=text(at(wanted, "provider", "region")),
            zones=len(texts(at(wanted, "provider", "zones"))),
            taints=taints_of(seed),
            networks=SeedNetworks.of(seed),
            allocatable=allocatable_shoots(seed),
            problem=_problem(seed),
            progressing_since=time_or_none(gardenlet.get("lastTransitionTime")) if is_progressing else None,
        )

    def unusable(self, now: datetime, grace: timedelta) -> str:
        """Reason why no Shoot may be scheduled to it; empty if it is usable.

        Args: grace: maximum time that a gardenlet that was ready may be progressing.
        """
        since = self.progressing_since
        if self.problem or since is None or now - since < grace:
            return self.problem
        return f"condition {GARDENLET_READY} is {IN_PROGRESS}"


def _problem(seed: Object) -> str:
    if is_deleting(seed):
        return "it is being deleted"
    if at(spec(seed), "settings", "scheduling", "visible") is False:
        return "spec.settings.scheduling.visible is false"
    if is_truthy(annotations(seed).get(keys.CORDONED)):
        return f"it is cordoned (annotation {keys.CORDONED})"
    if not at(seed, "status", "lastOperation"):
        return "its gardenlet has not started its reconciliation (no status.lastOperation)"
    ready = mapping(condition(seed, GARDENLET_READY))
    is_timed = time_or_none(ready.get("lastTransitionTime")) is not None
    if ready.get("status") != "True" and not (ready.get("status") == IN_PROGRESS and is_timed):
        return f"condition {GARDENLET_READY} is {text(ready.get('status')) or 'missing'}"
    backup = mapping(condition(seed, BACKUP_BUCKETS_READY)).get("status")
    if spec(seed).get("backup") and backup != "True":
        return f"condition {BACKUP_BUCKETS_READY} is {text(backup) or 'missing'}"
    return ""


def taints_of(seed: Object) -> tuple[tuple[str, str], ...]:
    """Key and value of each taint; a missing value is empty."""
    return _pairs(mappings(spec(seed).get("taints")))


def _pairs(entries: Iterable[Object]) -> tuple[tuple[str, str], ...]:
    return tuple((text(each.get("key")), text(each.get("value"))) for each in entries)


def tolerates(tolerations: Iterable[Object], taints: Iterable[tuple[str, str]]) -> bool:
    """Whether there is a toleration for each taint: of the same key, and, if the taint has a value, of the same one."""
    tolerated = set(_pairs(tolerations))
    known = {name for name, _ in tolerated}
    return all(taint in tolerated if taint[1] else taint[0] in known for taint in taints)


# --- present and maximum number of Shoots


class Usage(Counter[str]):
    """Number of Shoots by the name of the Seed."""

    @classmethod
    def of(cls, shoots: Iterable[Object]) -> "Usage":
        return cls(seed for shoot in shoots for seed in seeds_of(shoot))

    def __call__(self, seed: str) -> int:
        return self[seed]

    def add(self, seed: str) -> None:
        self[seed] += 1


def allocatable_shoots(seed: Object) -> int | None:
    """Maximum number of its Shoots, rounded up; None if there is no limit, or the value is invalid."""
    value = at(seed, "status", "allocatable", "shoots")
    try:
        quantity = parse_quantity(value) if isinstance(value, str | int) else None
        return None if quantity is None else int(quantity.to_integral_value(ROUND_CEILING))
    except (ValueError, ArithmeticError):
        return None
