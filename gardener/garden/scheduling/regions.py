"""Distances between regions: from a ConfigMap of the operators, or else from their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kube.objects import Key, Object, annotations, key, string_map
from kube.validation import shown
from kube.yaml import Budget, load

PURPOSE = "scheduling.gardener.cloud/purpose"
"""Label of the ConfigMaps."""
REGION_CONFIG = "region-config"
"""Value of the label."""
PROFILES = "scheduling.gardener.cloud/cloudprofiles"
"""Annotation of the ConfigMaps: names of cloud profiles, separated by commas."""
_MOST_VALUES = 10_000

_ORIENTATIONS = ("north", "south", "east", "west", "central")
"""Orientations, in search order."""
_OTHER_PROVIDER = 2


@dataclass(frozen=True, slots=True)
class RegionConfig:
    """Distances from regions of Shoots to those of Seeds, for some cloud profiles."""

    key: Key
    profiles: Sequence[str]
    regions: Mapping[str, str]
    """YAML by the region of the Shoot: distances by the region of the Seed."""

    @classmethod
    def of(cls, config_map: Object) -> "RegionConfig":
        named = annotations(config_map).get(PROFILES, "")
        profiles = tuple(name for each in named.split(",") if (name := each.strip()))
        return cls(key(config_map), profiles, string_map(config_map.get("data")))

    def distances(self, region: str) -> Mapping[str, int]:
        """Distances by the region of the Seed; empty if the ConfigMap does not have this region.

        Raises:
            ValueError: the distances are invalid.
        """
        if region not in self.regions:
            return {}
        try:
            return {region: 0, **_distances(self.regions[region])}
        except ValueError as error:
            where = f"Wrong format in region ConfigMap {self.key}, Region {shown(region)}"
            raise ValueError(f"failed to determine seed candidates. {where}: {error}") from error


def _distances(text: str) -> dict[str, int]:
    """Parse distances.

    Raises:
        ValueError: the text is invalid.
    """
    found = load(text, budget=Budget(_MOST_VALUES))
    if not isinstance(found, dict | None):
        raise ValueError("it is not a map from regions to distances")  # noqa: TRY004 - what is wrong is what was written
    wrong = [region for region, far in (found or {}).items() if type(far) is not int]
    if wrong:
        raise ValueError(f"the distance to {shown(wrong[0])} is not an integer")
    return found or {}


def naming(configs: Sequence[RegionConfig], profile: str) -> list[RegionConfig]:
    """Configurations for a cloud profile; the first one counts."""
    return sorted((each for each in configs if profile in each.profiles), key=lambda each: each.key)


# --- by name


@lru_cache(maxsize=16384)
def distance(one: str, other: str, *, is_same_provider: bool) -> int:
    """Distance of two regions by their names."""
    (here, rest), (there, other_rest) = _split(one), _split(other)
    between = 0 if here == there else 2 if here and there else 1
    return 2 * _edits(rest, other_rest) + between + (0 if is_same_provider else _OTHER_PROVIDER)


def _split(region: str) -> tuple[str, str]:
    """Orientation, or nothing, and the name with `:` in its place."""
    for orientation in _ORIENTATIONS:
        if orientation in region:
            return orientation, region.replace(orientation, ":", 1)
    return "", region


def _edits(one: str, other: str) -> int:
    """Levenshtein distance."""
    row = list(range(len(other) + 1))
    for number, char in enumerate(one, 1):
        corner, row[0] = row[0], number
        for column, each in enumerate(other, 1):
            corner, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, corner + (char != each))
    return row[-1]
