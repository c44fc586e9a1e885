"""Types of conditions, and what is said in them by more than one program."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kube.clock import parse_time
from kube.objects import text

# --- of ManagedResources
RESOURCES_APPLIED = "ResourcesApplied"
RESOURCES_HEALTHY = "ResourcesHealthy"
RESOURCES_PROGRESSING = "ResourcesProgressing"
READY = "Ready"
"""Sums up the others, if the configuration asks for it."""

IN_PROGRESS = "Progressing"
"""A status of its own beside True, False and Unknown."""

# --- of Seeds
GARDENLET_READY = "GardenletReady"
BACKUP_BUCKETS_READY = "BackupBucketsReady"
EXTENSIONS_READY = "ExtensionsReady"
SEED_SYSTEM_COMPONENTS_HEALTHY = "SeedSystemComponentsHealthy"

# --- of ManagedSeeds
SEED_REGISTERED = "SeedRegistered"

# --- of Shoots
EVERY_NODE_READY = "EveryNodeReady"
SHOOT_CONDITIONS = (
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    EVERY_NODE_READY,
    "SystemComponentsHealthy",
)
"""Of workerless Shoots all but `EVERY_NODE_READY`."""
HIBERNATION_POSSIBLE = "HibernationPossible"
"""A constraint, as the next one is."""
MAINTENANCE_PRECONDITIONS_SATISFIED = "MaintenancePreconditionsSatisfied"

# --- of ControllerInstallations
VALID = "Valid"
INSTALLED = "Installed"
HEALTHY = "Healthy"
PROGRESSING = "Progressing"
REQUIRED = "Required"


def softened(status: str, old: Mapping[str, Any] | None, *, threshold: float, now: datetime) -> str:
    """The status to write for `False` or `Unknown`: what was true is progressing for a while first.

    `threshold` is how many seconds it may be so, `old` the condition as it is, or None if there is none.
    """
    if old is None or threshold <= 0:
        return status
    if old.get("status") == "True":
        return IN_PROGRESS
    remaining = progressing_until(old, threshold=threshold)
    return IN_PROGRESS if remaining is not None and now <= remaining else status


def progressing_until(condition: Mapping[str, Any], *, threshold: float) -> datetime | None:
    """When a condition that is progressing has been so for too long; None: it is not progressing."""
    if condition.get("status") != IN_PROGRESS:
        return None
    try:
        return parse_time(text(condition.get("lastTransitionTime"))) + timedelta(seconds=threshold)
    except ValueError:
        return None
