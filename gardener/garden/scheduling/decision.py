"""The decision: filters in their order, the strategy, and the Seed with the fewest Shoots of those left."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from gardener.garden.profiles import profile_of
from gardener.garden.scheduling import networks
from gardener.garden.scheduling.networks import ShootNetworks
from gardener.garden.scheduling.regions import RegionConfig, distance, naming
from gardener.garden.scheduling.seeds import SeedInfo, tolerates
from gardener.garden.shoots import last_operation
from kube.objects import (
    Object,
    is_deleting,
    mapping,
    mappings,
    matches_label_selector,
    selector_text,
    spec,
    text,
    texts,
)
from kube.paths import at

# --- the state of a Shoot


_SCHEDULER = "default-scheduler"
_FAILED = "Failed to schedule Shoot: "


def waits(shoot: Object) -> bool:
    """Whether this scheduler has to choose its Seed."""
    wanted = spec(shoot)
    is_ours = text(wanted.get("schedulerName")) in {"", _SCHEDULER}
    return is_ours and not wanted.get("seedName") and not is_deleting(shoot)


def failed_to_schedule(reason: str) -> str:
    """Text for status and Events."""
    return f"{_FAILED}{reason}"


def reports_failure(shoot: Object) -> bool:
    """Whether the last operation is the scheduler's report that it found no Seed."""
    last = last_operation(shoot)
    kind, state = last.get("type"), last.get("state")
    return (kind, state) == ("Create", "Pending") and text(last.get("description")).startswith(_FAILED)


# --- distances of the Seeds that fit


_TOO_FAR = 1000
_TESTING = "testing"
"""Purpose of Shoots that run anywhere."""


class Strategy(StrEnum):
    SAME_REGION = "SameRegion"
    MINIMAL_DISTANCE = "MinimalDistance"


Near = tuple[Sequence[SeedInfo], int]
"""Candidates, and their common distance."""


def nearest(
    strategy: Strategy, shoot_spec: Object, profile: str, seeds: Sequence[SeedInfo], configs: Sequence[RegionConfig]
) -> Near:
    """Nearest Seeds, with their distance.

    Raises:
        ValueError: the region ConfigMap is invalid.
    """
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


# --- the decision


_ZONES_OF_HA = 3
_ANY_PROVIDER = "*"
_MOST_NAMED = 100
"""Seeds in one message."""
_LONGEST_SELECTOR = 1024
"""Characters of a selector in a message."""

GRACE = timedelta(minutes=5)


class Filter(StrEnum):
    """Filters of Seeds, in this order; values of a label of metrics."""

    USABLE = "usable"
    PROFILE_SELECTOR = "cloudprofile_selector"
    SHOOT_SELECTOR = "shoot_selector"
    PROVIDER = "provider"
    ZONES = "zones"
    NETWORKS = "networks"
    TAINTS = "taints"
    CAPACITY = "capacity"
    STRATEGY = "strategy"


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Reason why a Seed is excluded."""

    by: Filter
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedCandidates:
    """Input of a decision in addition to the Shoot and its cloud profile."""

    seeds: Sequence[SeedInfo]
    """Seeds sorted by name: of equally good ones the first one is chosen."""
    usage: Callable[[str], int]
    """Number of Shoots by the name of the Seed, such as `Usage`."""
    now: datetime
    region_configs: Sequence[RegionConfig] = ()
    strategy: Strategy = Strategy.SAME_REGION
    grace: timedelta = GRACE
    """Maximum time that the gardenlet of a ready Seed may be progressing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    seed: str = ""
    """Name of the Seed; empty if there is none."""
    message: str = ""
    """Reason why there is none."""
    excluded: Mapping[str, Exclusion] = field(default_factory=dict)
    """Excluded Seeds, by name."""
    lacks_room: bool = False
    """Whether a Seed would fit if it had room."""
    distance: int = 0
    """Distance of the chosen Seed; 0 unless the strategy measures it."""


class _NoSeedError(Exception):
    """No Seed is left."""


def decide(shoot: Object, profile: Object | None, candidates: SeedCandidates) -> Decision:
    """Choose a Seed. Args: profile: offer to the Shoot, see `profiles.offered`; None: the profile does not exist."""
    resource, name = profile_of(spec(shoot))
    if not name:
        return Decision(message="could not determine cloudprofile from shoot")
    if not profile:
        problem = "not found" if profile is None else "has not been rendered yet"
        return Decision(message=f'{resource.plural}.{resource.group} "{name}" {problem}')
    return _Decider(shoot, profile, name, candidates).decide()


class _Decider:
    """One decision; each filter gets the Seeds that the previous one has left."""

    def __init__(self, shoot: Object, profile: Object, profile_name: str, candidates: SeedCandidates) -> None:
        self._shoot, self._profile, self._profile_name, self._candidates = shoot, profile, profile_name, candidates
        self._spec = spec(shoot)
        self._left = candidates.seeds
        self._excluded: dict[str, Exclusion] = {}

    def decide(self) -> Decision:
        try:
            self._keep_usable()
            self._keep_selected(Filter.PROFILE_SELECTOR, self._profile, "CloudProfile")
            self._keep_selected(Filter.SHOOT_SELECTOR, self._spec, "Shoot")
            self._keep_provider()
            self._keep_zones()
            self._keep_eligible()
            distance = self._keep_near()
        except _NoSeedError as error:
            return Decision(message=f"{error}", excluded=self._excluded, lacks_room=self._lacks_room())
        chosen = min(self._left, key=lambda seed: self._candidates.usage(seed.name))
        return Decision(seed=chosen.name, excluded=self._excluded, distance=distance)

    def _keep(self, excluded: Callable[[SeedInfo], Exclusion | None], error: Callable[[int], str]) -> None:
        """Remove excluded Seeds. Args: error: message from the number of Seeds before, if none is left."""
        left: list[SeedInfo] = []
        for seed in self._left:
            if exclusion := excluded(seed):
                self._excluded[seed.name] = exclusion
            else:
                left.append(seed)
        before, self._left = len(self._left), left
        if not left:
            raise _NoSeedError(error(before))

    def _keep_usable(self) -> None:
        def excluded(seed: SeedInfo) -> Exclusion | None:
            problem = seed.unusable(self._candidates.now, self._candidates.grace)
            return Exclusion(Filter.USABLE, problem) if problem else None

        self._keep(
            excluded,
            lambda count: f"none of the {count} seeds is valid for scheduling (not deleting, visible and ready)",
        )

    def _keep_selected(self, by: Filter, holder: Object, kind: str) -> None:
        if holder.get("seedSelector") is None:
            return
        selector = mapping(holder["seedSelector"])
        try:
            written = _shortened(selector_text(selector))
        except ValueError as error:
            shown = _shortened(json.dumps(selector, sort_keys=True))
            raise _NoSeedError(f"label selector conversion failed: {shown} for seedSelector: {error}") from error
        exclusion = Exclusion(by, f"its labels do not match the seed selector of the {kind}: {written}")
        self._keep(
            lambda seed: None if matches_label_selector(selector, seed.labels) else exclusion,
            lambda count: (
                f"none out of the {count} seeds has the matching labels required by seed selector of '{kind}'"
                f" (selector: '{written}')"
            ),
        )

    def _keep_provider(self) -> None:
        wanted = text(at(self._spec, "provider", "type"))
        allowed = set(texts(mapping(self._profile.get("seedSelector")).get("providerTypes"))) or {wanted}

        def excluded(seed: SeedInfo) -> Exclusion | None:
            if allowed & {_ANY_PROVIDER, seed.provider}:
                return None
            return Exclusion(Filter.PROVIDER, f"its provider type is {seed.provider}, not {_or(allowed)}")

        self._keep(excluded, lambda count: f'none out of the {count} seeds has a matching provider for "{wanted}"')

    def _keep_zones(self) -> None:
        tolerance = at(self._spec, "controlPlane", "highAvailability", "failureTolerance", "type")
        if tolerance != "zone":
            return

        def excluded(seed: SeedInfo) -> Exclusion | None:
            if seed.zones >= _ZONES_OF_HA:
                return None
            return Exclusion(Filter.ZONES, f"it has {seed.zones} of the {_ZONES_OF_HA} zones that are needed")

        self._keep(
            excluded,
            lambda count: (
                f"none of the {count} seeds has at least {_ZONES_OF_HA} zones for hosting a shoot control plane with"
                " failure tolerance type 'zone'"
            ),
        )

    def _keep_eligible(self) -> None:
        wanted = ShootNetworks.of(self._shoot)
        tolerations = mappings(self._spec.get("tolerations"))

        def excluded(seed: SeedInfo) -> Exclusion | None:
            if wanted is not None and (found := networks.problems(wanted, seed.networks)):
                return Exclusion(Filter.NETWORKS, f"invalid networks: [{' '.join(found)}]")
            if not tolerates(tolerations, seed.taints):
                return Exclusion(Filter.TAINTS, "shoot does not tolerate the seed's taints")
            if seed.allocatable is not None and self._candidates.usage(seed.name) >= seed.allocatable:
                return Exclusion(Filter.CAPACITY, "seed does not have available capacity for shoots")
            return None

        before = self._left
        self._keep(
            excluded,
            lambda count: (
                f"0/{count} seed cluster candidate(s) are eligible for scheduling:"
                f" {{{self._reasons([seed.name for seed in before])}}}"
            ),
        )

    def _reasons(self, names: Sequence[str]) -> str:
        reasons = [f"{name} => {self._excluded[name].reason}" for name in sorted(names)[:_MOST_NAMED]]
        more = len(names) - len(reasons)
        return ", ".join([*reasons, f"and {more} more"] if more else reasons)

    def _keep_near(self) -> int:
        """Keep the nearest Seeds, and return their distance."""
        try:
            candidates, distance = self._nearest(self._left)
        except ValueError as error:
            raise _NoSeedError(f"{error}") from error
        names = {seed.name for seed in candidates}
        region = text(self._spec.get("region"))

        def excluded(seed: SeedInfo) -> Exclusion | None:
            if seed.name in names:
                return None
            reason = f"with region {seed.region} and provider type {seed.provider} it is no candidate"
            return Exclusion(Filter.STRATEGY, f"{reason} by strategy {self._candidates.strategy}")

        self._keep(
            excluded,
            lambda _: (
                f"no matching seed candidate found for Configuration (Cloud Profile '{self._profile_name}', Region"
                f" '{region}', SeedDeterminationStrategy '{self._candidates.strategy}')"
            ),
        )
        return distance

    def _nearest(self, seeds: Sequence[SeedInfo]) -> Near:
        return nearest(
            self._candidates.strategy, self._spec, self._profile_name, seeds, self._candidates.region_configs
        )

    def _lacks_room(self) -> bool:
        full = [seed for seed in self._candidates.seeds if self._is_full(seed)]
        try:
            return bool(full) and bool(self._nearest(full)[0])
        except ValueError:
            return False

    def _is_full(self, seed: SeedInfo) -> bool:
        exclusion = self._excluded.get(seed.name)
        return exclusion is not None and exclusion.by == Filter.CAPACITY


def _shortened(selector: str) -> str:
    return selector if len(selector) <= _LONGEST_SELECTOR else f"{selector[:_LONGEST_SELECTOR]}…"


def _or(choices: Collection[str]) -> str:
    return " or ".join(sorted(choices))
