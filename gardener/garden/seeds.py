"""What belongs to a Seed in the garden, and how it is summed up."""

import hashlib
from collections.abc import Iterable

from gardener import conditions, keys
from kube.conditions import conditions_of
from kube.objects import Key, Object
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


def seed_of_user(user: str, groups: Iterable[str]) -> str:
    """The Seed whose gardenlet a user is; empty: it is somebody else."""
    if user.startswith(keys.SEED_USER_PREFIX) and keys.SEEDS_GROUP in groups:
        return user.removeprefix(keys.SEED_USER_PREFIX)
    return ""


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


# --- bootstrapping of gardenlets

BOOTSTRAP_ACCOUNT_PREFIX = "gardenlet-bootstrap-"
"""Of ServiceAccounts as which new gardenlets ask for their certificates."""
BOOTSTRAP_GROUP = "system:bootstrappers:gardenlet"
"""Of bootstrap tokens with which new gardenlets may ask for them."""
BOOTSTRAP_ROLE = "gardener.cloud:system:seed-bootstrapper"
"""The ClusterRole that permits it."""


def bootstrap_token_id(owner: Key) -> str:
    """Of the bootstrap token that is made for an object: a Seed, ManagedSeed or Gardenlet."""
    named = f"{owner.name}{owner.namespace}--{owner.name}" if owner.namespace else owner.name
    return hashlib.sha256(named.encode()).hexdigest()[:6]


def bootstrap_account(owner: Key) -> Key:
    """The ServiceAccount for the gardenlet of a ManagedSeed or Gardenlet."""
    return Key(owner.namespace, f"{BOOTSTRAP_ACCOUNT_PREFIX}{owner.name}")


def bootstrap_binding(account: Key) -> str:
    """The name of the ClusterRoleBinding of such a ServiceAccount."""
    return f"{BOOTSTRAP_ROLE}:{account.namespace}:{account.name}"


def summed_up(status: Object, *, has_phase: bool) -> Object:
    """The status of a Seed with what follows from its conditions.

    Args: has_phase: whether Seeds of the garden have it.
    """
    return {**status, "phase": phase_of(conditions_of({"status": status}))} if has_phase else status
