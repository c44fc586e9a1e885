"""Which Seed a Shoot is to run on: the rules of the scheduler, without I/O.

    candidates = SeedCandidates(seeds=[*map(SeedInfo.of, seeds)], usage=Usage.of(shoots), region_configs=[], now=now)
    decision = decide(shoot, profile, candidates)
    decision.seed            name of the Seed; empty: there is none
    decision.message         why there is none, in one sentence
    decision.excluded        of each Seed that is left out: the filter that did it, and its reason
    decision.lacks_room      there would be one, if it had room
    decision.distance        of the Seed that was chosen, as the strategy measures it

A Shoot is decided about if `waits(shoot)`. Whether a Seed that does not exist yet would take a Shoot is answered by
candidates that are nothing but that one; how many of several Shoots would fit by counting each as used by its decision
before the next one (`Usage.add`).

    seeds       what is read of a Seed, once for all decisions; how many Shoots it has and may have
    networks    which networks of a Shoot are in the way
    regions     distances between regions, by a ConfigMap or by their names
    decision    the filters in their order; which of the Seeds that fit are near: same region, or the smallest distance
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
