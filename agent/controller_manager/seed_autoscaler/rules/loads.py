"""Known usage and capacity of Seeds. An unknown amount is missing, never 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from kube.quantities import parse_quantity

Amounts = Mapping[str, Fraction]
"""Amounts by the name of the resource."""

SHOOTS = "shoots"
"""Resource of which every Shoot needs one."""
_LARGEST_EXPONENT = 30
"""Maximum exponent of a plausible amount."""


def amount_of(value: object) -> Fraction | None:
    """Value of a quantity; None if it is missing or implausible."""
    try:
        quantity = parse_quantity(value) if isinstance(value, str | int) else None
    except ValueError:
        return None
    return None if quantity is None else reckoned(quantity)


def reckoned(number: Decimal) -> Fraction | None:
    """Exact amount; None if it is implausible."""
    if not number.is_finite() or number < 0 or abs(number.adjusted()) > _LARGEST_EXPONENT:
        return None
    return Fraction(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedLoad:
    """Known load of a Seed of the set that stays."""

    name: str
    usage: Amounts
    allocatable: Amounts
    is_ready: bool = True
    is_deletable: bool = False
    """Whether the set would remove the Seed if it had too many."""

    def room(self, resource: str) -> Fraction:
        """Free amount for new Shoots; 0 if the Seed is not ready."""
        if not self.is_ready or resource not in self.allocatable:
            return Fraction(0)
        return max(self.allocatable[resource] - self.usage.get(resource, Fraction(0)), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Input of a decision, except settings and history.

    Attributes:
        replicas: requested number of replicas.
        existing: number of existing replicas.
        seeds: Seeds that stay, in the order in which the set would remove them.
        coming: number of replicas without a Seed.
        has_leaving: whether a replica is being removed, or its Seed is deleted or cordoned.
        leaving_usage: usage on those.
        unit: amounts of a new replica.
        sources: problem of the measurement of each measured resource; empty for none.
        pending: number of Shoots that wait for a Seed of this set.
        unsettled: reason why the set is not settled; empty if it is.
        last_scale_time: time of the last change of the number of replicas by a SeedAutoscaler.
    """

    replicas: int
    existing: int
    seeds: Sequence[SeedLoad]
    coming: int = 0
    has_leaving: bool = False
    leaving_usage: Amounts = field(default_factory=dict)
    unit: Amounts = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=lambda: {SHOOTS: ""})
    pending: int = 0
    unsettled: str = ""
    last_scale_time: datetime | None = None
    now: datetime
