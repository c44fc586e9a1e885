"""Which of the Seeds that fit are candidates: those that are near."""

from collections.abc import Sequence
from enum import StrEnum

from gardener.garden.scheduling.regions import RegionConfig, distance, naming
from gardener.garden.scheduling.seeds import SeedInfo
from kube.objects import Object, text
from kube.paths import at

_TOO_FAR = 1000
_TESTING = "testing"
"""Purpose of Shoots that run anywhere."""


class Strategy(StrEnum):
    SAME_REGION = "SameRegion"
    MINIMAL_DISTANCE = "MinimalDistance"


Near = tuple[Sequence[SeedInfo], int]
"""Candidates, and how far all of them are."""


def nearest(
    strategy: Strategy, shoot_spec: Object, profile: str, seeds: Sequence[SeedInfo], configs: Sequence[RegionConfig]
) -> Near:
    """Raises ValueError: the region ConfigMap can't be understood."""
    provider, region = text(at(shoot_spec, "provider", "type")), text(shoot_spec.get("region"))
    if shoot_spec.get("purpose") == _TESTING:
        return [seed for seed in seeds if seed.provider == provider], 0
    if strategy == Strategy.SAME_REGION:
        return [seed for seed in seeds if (seed.provider, seed.region) == (provider, region)], 0
    config = next(iter(naming(configs, profile)), None)
    known = {} if config is None else config.distances(region)
    mapped = [(known[seed.region], seed) for seed in seeds if seed.region in known]
    return _least(mapped) if mapped else _by_name(provider, region, seeds)


def _by_name(provider: str, region: str, seeds: Sequence[SeedInfo]) -> Near:
    distances = [(distance(seed.region, region, is_same_provider=seed.provider == provider), seed) for seed in seeds]
    return _least([each for each in distances if each[0] < _TOO_FAR])


def _least(distances: Sequence[tuple[int, SeedInfo]]) -> Near:
    least = min((far for far, _ in distances), default=0)
    return [seed for far, seed in distances if far == least], least
