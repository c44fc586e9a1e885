"""Which Seed a Shoot is to run on: the rules of the scheduler, without I/O.

    garden = Garden(seeds=[SeedInfo.of(seed) for seed in seeds], usage=Usage.of(shoots), region_configs=[], now=now)
    decision = decide(shoot, profile, garden)
    decision.seed            name of the Seed; empty: there is none
    decision.message         why there is none, in one sentence
    decision.excluded        of each Seed that is left out: the filter that did it, and its reason
    decision.lacks_room      there would be one, if it had room
    decision.distance        of the Seed that was chosen, as the strategy measures it

A Shoot is decided about if `waits(shoot)`. Whether a Seed that does not exist yet would take a Shoot is answered by a
Garden with nothing but that one; how many of several Shoots would fit by counting each as used by its decision before
the next one (`Usage.add`).

    seeds       what is read of a Seed, once for all decisions
    capacity    how many Shoots a Seed has and may have
    networks    which networks of a Shoot are in the way
    strategies  which of the Seeds that fit are near: same region, or the smallest distance
    regions     distances between regions, by a ConfigMap or by their names
    decision    the filters in their order
"""

from gardener.garden.scheduling.capacity import Usage, allocatable_shoots
from gardener.garden.scheduling.decision import Decision, Exclusion, Filter, Garden, decide
from gardener.garden.scheduling.regions import RegionConfig
from gardener.garden.scheduling.seeds import SeedInfo, taints_of, tolerates
from gardener.garden.scheduling.shoots import failed_to_schedule, is_told_of_failure, waits
from gardener.garden.scheduling.strategies import Strategy

__all__ = [
    "Decision",
    "Exclusion",
    "Filter",
    "Garden",
    "RegionConfig",
    "SeedInfo",
    "Strategy",
    "Usage",
    "allocatable_shoots",
    "decide",
    "failed_to_schedule",
    "is_told_of_failure",
    "taints_of",
    "tolerates",
    "waits",
]
