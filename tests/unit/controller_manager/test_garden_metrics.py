"""The series of a garden."""

from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agent.controller_manager.common.api import (
    PROJECTS_VIEW,
    QUOTAS_VIEW,
    SEED_AUTOSCALERS_VIEW,
    SEEDS_VIEW,
    SHOOTS_VIEW,
)
from agent.controller_manager.metrics import GardenCollector
from kube.objects import Object
from kube.runtime.cache import Store, View
from kube.runtime.watch import ListBegins, ListEnds, Present

T1, T2 = "2025-01-01T12:00:00Z", "2025-01-01T12:05:00Z"
T1_SECONDS, T2_SECONDS = 1735732800.0, 1735733100.0


def store(
    view: View[Object], *statuses: Any, deleted: Iterable[tuple[str, str]] = (), synced: bool = True
) -> Store[Any]:
    """Objects of a kind, as the API server lists them.

    Args: deleted: others that are being deleted: since when, and what finalizer they have.
    """
    found: Store[Any] = Store(view)
    source = found.source("")
    source.apply(ListBegins(0))
    objects: list[Object] = [
        *({"status": status, "metadata": {}} for status in statuses),
        *({"metadata": {"deletionTimestamp": time, "finalizers": [name]}} for time, name in deleted),
    ]
    for number, obj in enumerate(objects):
        obj["metadata"] |= {"name": f"n-{number}", "resourceVersion": str(number + 1)}
        source.apply(Present({"spec": {}, **obj}))
    if synced:
        source.apply(ListEnds(100))
    return found


def series(*stores: Store[Any]) -> dict[str, float]:
    """By name, without the prefix, and the values of their labels."""
    registry = CollectorRegistry()
    registry.register(GardenCollector(lambda: stores))
    return {
        "/".join((family.name.removeprefix("controller_manager_"), *sample.labels.values())): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


def ready(status: str) -> Object:
    return {"conditions": [{"type": "GardenletReady", "status": status}]}


def test_without_controllers_there_is_nothing_to_report() -> None:
    registry = CollectorRegistry()
    registry.register(GardenCollector(tuple))
    assert not [sample for family in registry.collect() for sample in family.samples]


def test_nothing_is_reported_of_kinds_that_are_not_known_yet() -> None:
    assert not series(store(SEEDS_VIEW, ready("Unknown"), synced=False))


@pytest.mark.parametrize(
    ("view", "statuses", "counted"),
    [
        (
            SEEDS_VIEW,
            [
                ready("True"),
                ready("Unknown"),
                ready("Unknown"),
                ready("Progressing"),
                {},
                {"conditions": "?"},
                ready("?"),
            ],
            {"True": 1, "False": 0, "Unknown": 2, "Progressing": 1, "None": 3},
        ),
        (
            PROJECTS_VIEW,
            [{"phase": "Ready"}, {"phase": "Failed"}, {}, None, {"phase": ["?"]}],
            {"Pending": 0, "Ready": 1, "Failed": 1, "Terminating": 0, "None": 3},
        ),
        (
            SHOOTS_VIEW,
            [
                {"lastMaintenance": {"state": "Failed"}},
                {"lastMaintenance": {"state": "Succeeded"}},
                {"lastMaintenance": 1},
            ],
            {"Processing": 0, "Succeeded": 1, "Failed": 1, "None": 1},
        ),
    ],
    ids=["Seeds", "Projects", "Shoots"],
)
def test_objects_are_counted_by_values_that_are_known_beforehand(
    view: View[Object], statuses: list[Any], counted: dict[str, float]
) -> None:
    name = {SEEDS_VIEW: "seeds", PROJECTS_VIEW: "projects", SHOOTS_VIEW: "shoots_last_maintenance"}[view]
    found = series(store(view, *statuses))
    assert {key: value for key, value in found.items() if key.startswith(f"{name}/")} == {
        f"{name}/{value}": number for value, number in counted.items()
    }


def test_stale_projects_are_counted_and_the_first_deletion_is_reported() -> None:
    statuses = [
        {},
        {"staleSinceTimestamp": T1},
        {"staleSinceTimestamp": T1, "staleAutoDeleteTimestamp": T2},
        {"staleSinceTimestamp": T1, "staleAutoDeleteTimestamp": "?"},
    ]
    found = series(store(PROJECTS_VIEW, *statuses))
    assert found["projects_stale"] == 3
    assert found["projects_first_deletion_timestamp_seconds"] == T2_SECONDS
    assert "projects_first_deletion_timestamp_seconds" not in series(store(PROJECTS_VIEW, *statuses[:2]))


def test_deletions_wait_as_long_as_the_finalizer_is_there() -> None:
    deleted = [(T2, "gardener"), (T1, "gardener"), ("2024-01-01T00:00:00Z", "of-somebody-else")]
    registration = "core.gardener.cloud/controllerregistration"
    found = series(store(QUOTAS_VIEW, {}, deleted=deleted), store(SEEDS_VIEW, deleted=[(T2, registration)]))
    assert {key: value for key, value in found.items() if key.startswith("deletions_")} == {
        "deletions_waiting/Quota": 2,
        "deletions_waiting/Seed": 1,
        "deletions_waiting_since_timestamp_seconds/Quota": T1_SECONDS,
        "deletions_waiting_since_timestamp_seconds/Seed": T2_SECONDS,
    }


def test_each_seed_shows_how_full_it_is() -> None:
    seeds = store(SEEDS_VIEW, {"capacity": {"shoots": "5", "x": "1k"}, "allocatable": {"shoots": 4, "y": "?"}}, {})
    on = {"seedName": "n-0"}
    found = series(seeds, store(SHOOTS_VIEW, on, on, {"seedName": "gone"}, {}))
    assert {key: value for key, value in found.items() if key.startswith("seed_")} == {
        "seed_capacity/n-0/shoots": 5,
        "seed_capacity/n-0/x": 1000,
        "seed_allocatable/n-0/shoots": 4,
        "seed_usage/n-0/shoots": 2,
        "seed_usage/n-1/shoots": 0,
    }
    assert not any(key.startswith("seed_usage") for key in series(seeds))


def test_what_seed_autoscalers_have_found_is_reported() -> None:
    current = {"type": "Resource", "resource": {"name": "shoots", "current": {"averageUtilization": 75}}}
    status = {"currentReplicas": 2, "desiredReplicas": 3, "pendingShoots": 7, "currentMetrics": [current]}
    assert series(store(SEED_AUTOSCALERS_VIEW, status)) == {
        "seed_autoscaler_current_replicas/n-0": 2,
        "seed_autoscaler_desired_replicas/n-0": 3,
        "seed_autoscaler_pending_shoots/n-0": 7,
        "seed_autoscaler_utilization/n-0/shoots": 0.75,
    }
