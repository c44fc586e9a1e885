"""Readiness of the own Seed for Shoots: its gardenlet has to have reconciled it first, and found it healthy.

User requests wait until this gardenlet has begun with the Seed. A Shoot that was last reconciled by another version,
newer or older, and has no request, waits until the Seed is reconciled completely, so that all prerequisites exist.
"""

from gardener import conditions, operations
from gardener.garden.shoots import last_operation
from gardener.health.checks.rule import outdated, required_condition
from kube.objects import Object, mapping, text
from kube.paths import at

_REQUIRED = (conditions.GARDENLET_READY, conditions.SEED_SYSTEM_COMPONENTS_HEALTHY)


def problem_of_repetition(seed: Object, shoot: Object, *, gardener: Object) -> str:
    """Reason why a Shoot without a new request has to wait; empty if there is none."""
    if found := problem(seed, gardener=gardener):
        return found
    is_of_other = at(shoot, "status", "gardener", "version") != gardener["version"]
    if is_of_other and last_operation(seed).get("state") == operations.PROCESSING:
        return f"its reconciliation by version {gardener['version']} has not finished"
    return ""


def problem(seed: Object, *, gardener: Object) -> str:
    """Reason why the Seed is not ready; empty if it is. Args: gardener: id, name and version of this gardenlet."""
    seen = mapping(mapping(seed.get("status")).get("gardener"))
    if seen != gardener:
        return f"observing Gardener version not up to date ({text(seen.get('version'))}/{gardener['version']})"
    return (
        outdated(seed)
        or next((found for each in _REQUIRED if (found := required_condition(seed, each, "True"))), None)
        or ""
    )
