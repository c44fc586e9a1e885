"""Objects in the garden that belong to a Seed, and summaries of its state."""

import hashlib
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from gardener import conditions, keys
from kube.conditions import conditions_of
from kube.names import dns_label_problems
from kube.objects import Key, Object, annotations, text
from kube.paths import mapping_at, with_value

NAMESPACE_PREFIX = "seed-"
"""Prefix of the namespaces of Seeds, each of which holds the objects that its gardenlet may read."""
LEASE_NAMESPACE = "gardener-system-seed-lease"
"""Namespace in which gardenlets renew the Leases that are named after their Seeds."""
LOCAL_GARDENLET = "seed.gardener.cloud/local-gardenlet"
"""Annotation of a Seed's Lease, set by devcluster: the computer of a gardenlet that is no pod, and the address of its
metrics and flows there, such as `rose http://127.0.0.1:2729`.
"""

_RESERVATION = ("settings", "excessCapacityReservation")
_NOT_READY = frozenset({"False", "Unknown"})


def namespace_of(seed: str) -> str:
    return f"{NAMESPACE_PREFIX}{seed}"


def seed_of(namespace: str) -> str:
    """The name of the Seed that has, or would have, the namespace; empty for other namespaces."""
    return namespace.removeprefix(NAMESPACE_PREFIX) if namespace.startswith(NAMESPACE_PREFIX) else ""


def with_reserved_capacity(spec: Object) -> Object:
    """The spec of a Seed; unless it specifies otherwise, some capacity is reserved."""
    reservation = mapping_at(spec, *_RESERVATION)
    if reservation.get("enabled") is False or reservation.get("configs"):
        return spec
    return with_value(spec, (*_RESERVATION, "configs"), [{"resources": {"cpu": "2", "memory": "6Gi"}}])


def is_seed_name(name: str) -> bool:
    return not dns_label_problems(name)


def seed_of_user(user: str, groups: Iterable[str]) -> str | None:
    """The Seed of a gardenlet; None for other users; empty for one without a valid name, which is denied everything."""
    if keys.SEEDS_GROUP not in groups:
        return None
    name = user.removeprefix(keys.SEED_USER_PREFIX)
    return name if name != user and is_seed_name(name) else ""


def no_seed_text(user: str) -> str:
    """Reason why a member of the group without a valid name is denied everything."""
    return (
        f'user "{user}" in group "{keys.SEEDS_GROUP}" is not a gardenlet of a Seed: its name must be '
        f'"{keys.SEED_USER_PREFIX}" and a DNS label'
    )


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
"""Prefix of ServiceAccounts as which new gardenlets request their certificates."""
BOOTSTRAP_GROUP = "system:bootstrappers:gardenlet"
"""Group of bootstrap tokens with which new gardenlets may request their certificates."""
_FOR_SEED, _BY_GARDENLET = f"{BOOTSTRAP_GROUP}:seed:", ":by:"
BOOTSTRAP_ROLE = "gardener.cloud:system:seed-bootstrapper"
"""ClusterRole that permits it."""


def bootstrap_token_id(owner: Key) -> str:
    """Id of the bootstrap token that is created for an object: a Seed, ManagedSeed or Gardenlet."""
    named = f"{owner.name}{owner.namespace}--{owner.name}" if owner.namespace else owner.name
    return hashlib.sha256(named.encode()).hexdigest()[:6]


class BootstrapToken(NamedTuple):
    """The groups of a bootstrap token that is valid for one Seed only."""

    seed: str
    issuer: str = ""
    """Seed whose gardenlet has created it; empty: an operator."""

    @property
    def group(self) -> str:
        return f"{_FOR_SEED}{self.seed}{_BY_GARDENLET if self.issuer else ''}{self.issuer}"

    @property
    def extra_groups(self) -> str:
        return f"{BOOTSTRAP_GROUP},{self.group}"


def bootstrap_tokens(groups: Iterable[str]) -> list[BootstrapToken]:
    """Tokens for the Seeds that a user's groups name; none if the token is valid for any new Seed."""
    found = (each.removeprefix(_FOR_SEED).partition(_BY_GARDENLET) for each in groups if each.startswith(_FOR_SEED))
    return [BootstrapToken(seed, issuer) for seed, _, issuer in found]


def bootstrap_account(owner: Key) -> Key:
    """The ServiceAccount for the gardenlet of a ManagedSeed or Gardenlet."""
    return Key(owner.namespace, f"{BOOTSTRAP_ACCOUNT_PREFIX}{owner.name}")


def bootstrap_binding(account: Key) -> str:
    """The name of the ClusterRoleBinding of such a ServiceAccount."""
    return f"{BOOTSTRAP_ROLE}:{account.namespace}:{account.name}"


def summed_up(status: Object, *, has_phase: bool) -> Object:
    """The status of a Seed with the fields that follow from its conditions.

    Args: has_phase: whether Seeds of the garden have it.
    """
    return {**status, "phase": phase_of(conditions_of({"status": status}))} if has_phase else status


# --- a gardenlet on this computer


def local_gardenlet_url(lease: Object, host: str) -> str:
    """Address of the gardenlet of a Seed's Lease; empty if it does not run on this computer.

    Gardenlets write the Lease, so it only leads to an address of this computer.
    """
    computer, _, url = text(annotations(lease).get(LOCAL_GARDENLET)).partition(" ")
    try:
        parts = urlsplit(url)
        is_local = parts.port is not None and _is_loopback(parts.hostname or "")
    except ValueError:
        return ""
    return f"http://{_in_url(parts.hostname or '')}:{parts.port}" if is_local and computer == host else ""


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
