"""Choice of the Seed of a Shoot: the rules of the scheduler, without I/O.

    candidates = SeedCandidates(seeds=[*map(SeedInfo.of, seeds)], usage=Usage.of(shoots), region_configs=[], now=now)
    decision = decide(shoot, profile, candidates)
    decision.seed            name of the Seed; empty: there is none
    decision.message         reason why there is none, in one sentence
    decision.excluded        excluded Seeds, each with the filter and its reason
    decision.lacks_room      whether a Seed would fit if it had room
    decision.distance        of the chosen Seed, as the strategy measures it

A Shoot is scheduled if `waits(shoot)`. To find out whether a Seed that does not exist yet would fit a Shoot, pass only
that one as candidate; to find out how many of several Shoots would fit, count each as used by its decision before the
next one (`Usage.add`).

    seeds       data of a Seed, read once for all decisions; its present and maximum number of Shoots
    networks    conflicts between the networks of a Shoot and a Seed
    regions     distances between regions, by a ConfigMap or by their names
    decision    the filters in their order; the nearest of the remaining Seeds: same region, or the smallest distance
"""

from gardener.garden.scheduling.decision import (
    Decision,
    Exclusion,
    Filter,
    SeedCandidates,
    Strategy,
    decide,
    failed_to_schedule,
    reports_failure,
    waits,
)
from gardener.garden.scheduling.regions import RegionConfig
from gardener.garden.scheduling.seeds import SeedInfo, Usage, allocatable_shoots, taints_of, tolerates

__all__ = [
    "Decision",
    "Exclusion",
    "Filter",
    "RegionConfig",
    "SeedCandidates",
    "SeedInfo",
    "Strategy",
    "Usage",
    "allocatable_shoots",
    "decide",
    "failed_to_schedule",
    "reports_failure",
    "taints_of",
    "tolerates",
    "waits",
]
