"""Status of a Seed, from the start of an operation to its end."""

from datetime import datetime
from typing import Any

from agent.gardenlet.flow.graph import Snapshot
from config.gardenlet.schema import Resources
from gardener import conditions, operations
from kube.clock import format_time
from kube.objects import Object, integer, is_deleting, mappings, metadata
from kube.paths import mapping_at
from kube.quantities import added

_BEGUN = {
    "Reconcile": "Reconciliation of Seed cluster initialized.",
    "Delete": "Deletion of Seed cluster in progress.",
}
_SUCCEEDED = {
    "Reconcile": "Seed cluster has been successfully reconciled.",
    "Delete": "Seed cluster has been successfully deleted.",
}
_HINTED = frozenset(
    {
        conditions.BACKUP_BUCKETS_READY,
        conditions.EXTENSIONS_READY,
        conditions.GARDENLET_READY,
        conditions.SEED_SYSTEM_COMPONENTS_HEALTHY,
    }
)
"""Conditions that are checked again after an operation."""


def operation_type(seed: Object) -> str:
    return "Delete" if is_deleting(seed) else "Reconcile"


def begun(
    seed: Object,
    *,
    gardener: Object,
    kubernetes_version: str,
    cluster_identity: str,
    certificate_expires: datetime | None,
    resources: Resources,
    now: datetime,
) -> Object:
    """Status fields for a started operation on the Seed."""
    of_type = operation_type(seed)
    fields: Object = {
        "lastOperation": operations.operation(of_type, "Processing", 0, _BEGUN[of_type], now=now),
        "gardener": gardener,
        "kubernetesVersion": kubernetes_version,
        "observedGeneration": metadata(seed)["generation"],
        "clusterIdentity": cluster_identity,
    }
    if certificate_expires is not None:
        fields["clientCertificateExpirationTimestamp"] = format_time(certificate_expires)
    return fields | capacities(resources)


def capacities(resources: Resources) -> Object:
    """Both capacity fields as a whole; none if no capacity is configured, so that those in the status stay."""
    if not resources.capacity:
        return {}
    capacity = {name: str(amount) for name, amount in resources.capacity.items()}
    return {
        "capacity": capacity,
        "allocatable": {name: _without(amount, resources.reserved.get(name)) for name, amount in capacity.items()},
    }


def _without(amount: str, reserved: Any) -> str:
    return amount if reserved is None else added(amount, f"-{reserved}")


def progressing(status: Object, snapshot: Snapshot, *, now: datetime) -> Object:
    """Status of a running flow."""
    of_type = mapping_at(status, "lastOperation").get("type") or "Reconcile"
    operation = operations.operation(of_type, "Processing", snapshot.progress, snapshot.description, now=now)
    return {**status, "lastOperation": operation}


def succeeded(seed: Object, status: Object, *, is_repeated: bool, now: datetime) -> Object:
    """The status after success. Conditions stay if the operation repeated a successful one."""
    of_type = operation_type(seed)
    operation = operations.operation(of_type, "Succeeded", 100, _SUCCEEDED[of_type], now=now)
    ended = {**status, "lastOperation": operation}
    if is_repeated:
        return ended
    return {**ended, "conditions": conditions.to_be_checked(mappings(status.get("conditions")), _HINTED, now=now)}


def failed(seed: Object, status: Object, text: str, *, progress: int | None = None, now: datetime) -> Object:
    """Status of a failed operation; `text` has all errors, and `progress` is None to keep the last one."""
    description = f"{text} Operation will be retried."
    if progress is None:
        progress = integer(mapping_at(status, "lastOperation").get("progress"))
    return {
        **status,
        "lastOperation": operations.operation(operation_type(seed), "Error", progress, description, now=now),
    }
