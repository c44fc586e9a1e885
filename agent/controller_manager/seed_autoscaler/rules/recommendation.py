"""Number of replicas recommended by each metric, and the room for waiting Shoots.

Seeds that are being made count with their future capacity, so that a slow one is not made twice. Seeds are given up
only as far as the remaining ones are on target, and only those that the set would remove: those without Shoots.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from agent.controller_manager.seed_autoscaler.rules.loads import SHOOTS, Observation, SeedLoad
from agent.controller_manager.seed_autoscaler.rules.settings import Metric, Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measured values and recommendation of a metric."""

    metric: Metric
    total: Fraction
    allocatable: Fraction
    seeds: int
    wanted: int
    lacks_deletable: bool = False
    """Whether fewer would be enough, but all others have Shoots."""

    @property
    def utilization(self) -> Fraction | None:
        """Share in use; None if nothing is allocatable yet."""
        return self.total / self.allocatable if self.allocatable else None

    @property
    def average(self) -> Fraction:
        return self.total / max(self.seeds, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A metric that can't be computed."""

    metric: Metric
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Recommendation of all metrics together.

    Attributes:
        wanted: number of replicas; None if no metric is known.
        why: reason for more replicas.
        lacks_deletable: as in `Measured`.
    """

    wanted: int | None
    why: str = ""
    measured: Sequence[Measured] = ()
    unknown: Sequence[Unknown] = ()
    lacks_deletable: bool = False


def recommend(settings: Settings, seen: Observation) -> Recommendation:
    expected = without_surplus(seen)
    room = _Stock.of(SHOOTS, expected)
    needed = Fraction(expected.pending + settings.min_free_shoots)
    spare = None if isinstance(room, str) else _Spare(room.free - needed, room.unit)
    found = [_measure(metric, settings.tolerance, expected, spare) for metric in settings.metrics]
    measured = [each for each in found if isinstance(each, Measured)]
    unknown = [each for each in found if isinstance(each, Unknown)]
    if not measured:
        return Recommendation(wanted=None, unknown=unknown)
    highest = max(measured, key=lambda each: each.wanted)
    wanted, why = highest.wanted, _above(highest)
    if spare is not None and spare.amount < 0:
        enough = _base(expected) + ceil(-spare.amount / spare.unit)
        if enough > wanted:
            wanted, why = enough, _lacking(settings, expected)
    return Recommendation(
        wanted=max(wanted, seen.replicas) if unknown else wanted,
        why=why,
        measured=measured,
        unknown=unknown,
        lacks_deletable=all(each.lacks_deletable or each.wanted < seen.replicas for each in measured),
    )


def without_surplus(seen: Observation) -> Observation:
    """Observation without the surplus Seeds that the set will remove."""
    surplus = max(len(seen.seeds) + seen.coming - seen.replicas, 0)
    going = [seed for seed in seen.seeds if seed.is_deletable][:surplus]
    usage = dict(seen.leaving_usage)
    for seed in going:
        for resource, amount in seed.usage.items():
            usage[resource] = usage.get(resource, Fraction(0)) + amount
    return replace(seen, seeds=[seed for seed in seen.seeds if seed not in going], leaving_usage=usage)


def _base(seen: Observation) -> int:
    """Number of replicas that missing ones are added to, including those that take no Shoots, like cordoned ones."""
    return max(seen.replicas, len(seen.seeds) + seen.coming)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stock:
    """Amounts of a resource."""

    used: Fraction
    allocatable: Fraction
    free: Fraction
    seeds: int
    unit: Fraction
    """Amount of a new Seed; greater than 0."""
    deletable: Sequence[SeedLoad]

    @classmethod
    def of(cls, resource: str, seen: Observation) -> "_Stock | str":
        """Return the stock, or the reason why it is unknown."""
        if resource not in seen.sources:
            return f"usage of {resource} is unknown: the configuration has no source for it"
        there = [seed for seed in seen.seeds if seed.is_ready or resource in seed.allocatable]
        for seed in there:
            for what, amounts in (("usage", seed.usage), ("allocatable", seed.allocatable)):
                if resource not in amounts:
                    problem = f" ({seen.sources[resource]})" if what == "usage" and seen.sources[resource] else ""
                    return f"{what} of {resource} of Seed {seed.name} is unknown{problem}"
        allocatable = sum((seed.allocatable[resource] for seed in there), Fraction(0))
        unit = seen.unit.get(resource, allocatable / len(there) if there else None)
        if not unit:
            return f"capacity of {resource} of a new Seed is unknown"
        new = unit * (seen.coming + len(seen.seeds) - len(there))
        return cls(
            used=sum((seed.usage[resource] for seed in there), seen.leaving_usage.get(resource, Fraction(0))),
            allocatable=allocatable + new,
            free=sum((seed.room(resource) for seed in there), new),
            seeds=len(seen.seeds) + seen.coming,
            unit=unit,
            deletable=[seed for seed in there if seed.is_deletable],
        )


@dataclass(frozen=True, slots=True)
class _Spare:
    """Room for Shoots beyond the required minimum."""

    amount: Fraction
    unit: Fraction
    """Amount of a new Seed."""


def _measure(metric: Metric, tolerance: Fraction, seen: Observation, spare: _Spare | None) -> Measured | Unknown:
    """Evaluate a metric; `spare` is None if unknown."""
    stock = _Stock.of(metric.resource, seen)
    if isinstance(stock, str):
        return Unknown(metric=metric, why=stock)
    total = stock.used + (seen.pending if metric.resource == SHOOTS else 0)
    found = Measured(metric=metric, total=total, allocatable=stock.allocatable, seeds=stock.seeds, wanted=seen.replicas)
    ratio = _ratio(found)
    if ratio is None or abs(ratio - 1) <= tolerance:
        return found
    if ratio > 1:
        return replace(found, wanted=_base(seen) + _more(found, stock))
    if spare is None:
        return found
    gone = _dispensable(found, stock, spare.amount)
    rest = replace(found, wanted=seen.replicas - len(gone))
    return replace(
        rest, lacks_deletable=len(gone) == len(stock.deletable) and _could_lose_one(rest, stock, gone, spare)
    )


def _could_lose_one(rest: Measured, stock: _Stock, gone: Sequence[SeedLoad], spare: _Spare) -> bool:
    """Whether one more Seed could be given up, if one had no Shoots."""
    allocatable = stock.allocatable - sum((seed.allocatable[rest.metric.resource] for seed in gone), Fraction(0))
    room = spare.amount - sum((seed.room(SHOOTS) for seed in gone), Fraction(0))
    fits = _fits(rest, allocatable - stock.unit, stock.seeds - len(gone) - 1)
    return rest.wanted > 1 and fits and room >= spare.unit


def _ratio(found: Measured) -> Fraction | None:
    """Ratio of the present value to the target; None if nothing reports yet."""
    if not found.allocatable or not found.seeds:
        return None
    if found.metric.utilization is not None:
        return found.total / found.allocatable / found.metric.utilization
    return found.total / found.seeds / found.metric.average if found.metric.average else None


def _more(found: Measured, stock: _Stock) -> int:
    """Number of missing Seeds."""
    if found.metric.utilization is not None:
        return ceil((found.total / found.metric.utilization - stock.allocatable) / stock.unit)
    return ceil(found.total / found.metric.average) - stock.seeds if found.metric.average else 0


def _fits(found: Measured, allocatable: Fraction, seeds: int) -> bool:
    """Whether this total would still be on target with these Seeds."""
    if found.metric.utilization is not None:
        return found.total <= found.metric.utilization * allocatable
    return found.metric.average is not None and found.total <= found.metric.average * seeds


def _dispensable(found: Measured, stock: _Stock, spare: Fraction) -> Sequence[SeedLoad]:
    """First deletable Seeds, as many as can be spared."""
    allocatable, resource = stock.allocatable, found.metric.resource
    for index, seed in enumerate(stock.deletable):
        allocatable -= seed.allocatable[resource]
        spare -= seed.room(SHOOTS)
        if spare < 0 or not _fits(found, allocatable, stock.seeds - index - 1):
            return stock.deletable[:index]
    return stock.deletable


# --- texts


def _above(found: Measured) -> str:
    metric = found.metric
    if metric.utilization is not None and found.utilization is not None:
        values = f"{percent(found.utilization)}% instead of {percent(metric.utilization)}%"
    else:
        values = f"{plain(found.average)} for each Seed instead of {plain(metric.average or Fraction(0))}"
    return f"resource {metric.resource} above target ({values})"


def _lacking(settings: Settings, seen: Observation) -> str:
    if seen.pending:
        return f"pending shoots ({seen.pending})"
    return f"free room below minimum (minFreeShoots: {settings.min_free_shoots})"


def percent(share: Fraction) -> int:
    return round(share * 100)


def plain(amount: Fraction) -> str:
    """Quantity: whole, or in thousandths, rounded up."""
    return str(amount) if amount.denominator == 1 else f"{ceil(amount * 1000)}m"
