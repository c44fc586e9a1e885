"""Objects of ManagedSeedSets in any state, for rules that are tested without a cluster."""

from typing import Any

from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.garden.managed_seed_sets import REVISION_LABEL, Replica
from kube.objects import Object
from kube.resources import Resource

REVISION = "r1"


def replica_shoot(
    name: str, operation: str = "Create Succeeded", *, health: str | None = "healthy", **options: Any
) -> Object:
    """Args: operation: type and state of the last one; empty: none."""
    kind, _, state = operation.partition(" ")
    status = {"lastOperation": {"type": kind, "state": state}} if operation else {}
    labels = {"shoot.gardener.cloud/status": health} if health is not None else {}
    return _object(SHOOTS, name, status, labels=labels, namespace="garden", **options)


def managed_seed(name: str, registered: str = "True", **options: Any) -> Object:
    """Args: registered: the condition; empty: there is none."""
    status = {"conditions": [{"type": "SeedRegistered", "status": registered}] if registered else []}
    return _object(MANAGED_SEEDS, name, status, namespace="garden", **options)


def seed(name: str, *, conditions: dict[str, str] | None = None, **options: Any) -> Object:
    reported = {"GardenletReady": "True", "SeedSystemComponentsHealthy": "True", **(conditions or {})}
    status = {"conditions": [{"type": each, "status": status} for each, status in reported.items()]}
    return _object(SEEDS, name, status, **options)


def ready(name: str, *, revision: str = REVISION, **options: Any) -> Replica:
    """Args: options: of its ManagedSeed."""
    return Replica(
        shoot=replica_shoot(name, revision=revision),
        managed_seed=managed_seed(name, revision=revision, **options),
        seed=seed(name),
    )


def _object(
    resource: Resource,
    name: str,
    status: Object,
    *,
    observed: bool = True,
    deleting: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    namespace: str = "",
    revision: str = REVISION,
) -> Object:
    return {
        **resource.type_meta,
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "generation": 2,
            "labels": {**(labels or {}), REVISION_LABEL: revision},
            "annotations": annotations or {},
            **({"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleting else {}),
        },
        "status": {"observedGeneration": 2 if observed else 1, **status},
    }
