"""What belongs to a Seed in the garden, and how it is summed up."""

from collections.abc import Iterable

from gardener import conditions
from kube.objects import Object
from kube.paths import mapping_at, with_value

NAMESPACE_PREFIX = "seed-"
"""Of the namespaces of Seeds, each of which holds what its gardenlet may read."""
LEASE_NAMESPACE = "gardener-system-seed-lease"
"""Where gardenlets renew the Leases that are called as their Seeds."""

_RESERVATION = ("settings", "excessCapacityReservation")
_NOT_READY = frozenset({"False", "Unknown"})


def namespace_of(seed: str) -> str:
    return f"{NAMESPACE_PREFIX}{seed}"


def seed_of(namespace: str) -> str:
    """The name of the Seed whose namespace it is or would be; empty: none has such a one."""
    return namespace.removeprefix(NAMESPACE_PREFIX) if namespace.startswith(NAMESPACE_PREFIX) else ""


def with_reserved_capacity(spec: Object) -> Object:
    """The spec of a Seed; unless it says otherwise, some capacity is kept free."""
    reservation = mapping_at(spec, *_RESERVATION)
    if reservation.get("enabled") is False or reservation.get("configs"):
        return spec
    return with_value(spec, (*_RESERVATION, "configs"), [{"resources": {"cpu": "2", "memory": "6Gi"}}])


def phase_of(having: Iterable[Object]) -> str:
    """`Ready`, `NotReady` or `Unknown`, from the conditions of a Seed."""
    status = {each.get("type"): each.get("status") for each in having}
    if status.get(conditions.GARDENLET_READY) == "Unknown":
        return "Unknown"
    is_ready = (
        status.get(conditions.GARDENLET_READY) == "True"
        and status.get(conditions.BACKUP_BUCKETS_READY, "True") == "True"
        and status.get(conditions.EXTENSIONS_READY, "False") not in _NOT_READY
        and status.get(conditions.SEED_SYSTEM_COMPONENTS_HEALTHY) not in _NOT_READY
    )
    return "Ready" if is_ready else "NotReady"
