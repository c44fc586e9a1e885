"""Whether the own Seed can take Shoots: its gardenlet has to have reconciled it first, and found it healthy."""

from gardener import conditions
from gardener.health.checks.rule import outdated, required_condition
from kube.objects import Object, mapping, text

_REQUIRED = (conditions.GARDENLET_READY, conditions.SEED_SYSTEM_COMPONENTS_HEALTHY)


def problem(seed: Object, *, gardener: Object) -> str:
    """What is not ready yet; empty: nothing. Args: gardener: id, name and version of this gardenlet."""
    seen = mapping(mapping(seed.get("status")).get("gardener"))
    if seen != gardener:
        return f"observing Gardener version not up to date ({text(seen.get('version'))}/{gardener['version']})"
    return (
        outdated(seed)
        or next((found for each in _REQUIRED if (found := required_condition(seed, each, "True"))), None)
        or ""
    )
