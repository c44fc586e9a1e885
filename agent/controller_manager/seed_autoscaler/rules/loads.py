"""What Seeds carry and have room for, as far as it is known. What is not known is missing, never 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from kube.quantities import parse_quantity

Amounts = Mapping[str, Fraction]
"""By the name of the resource."""

SHOOTS = "shoots"
"""The resource that every Shoot needs one of."""
_LARGEST_EXPONENT = 30
"""Beyond that nothing is an amount of anything."""


def amount_of(value: object) -> Fraction | None:
    """The value of a quantity; None: it is missing, or none that can be reckoned with."""
    try:
        quantity = parse_quantity(value) if isinstance(value, str | int) else None
    except ValueError:
        return None
    return None if quantity is None else reckoned(quantity)


def reckoned(number: Decimal) -> Fraction | None:
    """None: it is no amount that can be reckoned with."""
    if not number.is_finite() or number < 0 or abs(number.adjusted()) > _LARGEST_EXPONENT:
        return None
    return Fraction(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedLoad:
    """One Seed of the set that is there to stay, as far as is known."""

    name: str
    usage: Amounts
    allocatable: Amounts
    is_ready: bool = True
    is_deletable: bool = False
    """The set would remove it if it had too many."""

    def room(self, resource: str) -> Fraction:
        """For Shoots that come; nothing comes to a Seed that is not ready."""
        if not self.is_ready or resource not in self.allocatable:
            return Fraction(0)
        return max(self.allocatable[resource] - self.usage.get(resource, Fraction(0)), Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision depends on, beside the settings and what was seen before.

    Attributes:
        replicas: how many the set is to have.
        existing: how many it has.
        seeds: those that are there to stay, in the order in which the set would remove them.
        coming: replicas that have no Seed yet.
        has_leaving: whether a replica is on its way out, or its Seed is cordoned.
        leaving_usage: what is still on those.
        unit: what a new replica will have.
        sources: of the resources whose usage is known at all, what is wrong with how it is measured; empty: nothing.
        pending: Shoots that wait for a Seed of this set.
        unsettled: why the set is not settled; empty: it is.
        last_scale_time: when a SeedAutoscaler changed the number of replicas the last time.
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
