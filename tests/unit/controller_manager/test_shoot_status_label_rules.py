"""The labels that sum up a Shoot."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.controller_manager.shoot.status_label import needed_labels, status
from kit.garden_objects import shoot
from kube.objects import Object

LABEL = "shoot.gardener.cloud/status"


def reported(
    operation: str = "", *conditions: str, errors: bool = False, labels: Object | None = None, **seeds: str
) -> Object:
    """Args: operation: type and state, as `Create Succeeded`."""
    said: Object = {"conditions": [{"type": f"T{i}", "status": each} for i, each in enumerate(conditions)]}
    if operation:
        said["lastOperation"] = dict(zip(("type", "state"), operation.split(), strict=True))
    if errors:
        said["lastErrors"] = [{"description": "e"}]
    if name := seeds.get("leaves"):
        said["seedName"] = name
    return shoot(labels=labels or {}, seedName=seeds.get("on", ""), status=said)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (reported(), "healthy"),
        (reported("", "False"), "healthy"),
        (reported("Create Processing", "False"), "healthy"),
        (reported("Create Error", errors=True), "unhealthy"),
        (reported("Create Failed"), "healthy"),
        (reported("Create Succeeded", "Unknown", "Progressing"), "unknown"),
        (reported("Create Succeeded", "True", "False", "Unknown"), "unhealthy"),
        (reported("Delete Error", "True", errors=True), "unhealthy"),
        (reported("Delete Succeeded", "False"), "healthy"),
        (reported("Delete Processing", "False"), "healthy"),
        (reported("Reconcile Processing", "True", "Progressing"), "progressing"),
        (reported("Reconcile Processing", "True", errors=True), "unhealthy"),
        (reported("Reconcile Processing"), "healthy"),
        (reported("Reconcile Succeeded", "True", errors=True), "healthy"),
        (reported("Reconcile Failed", "True"), "unhealthy"),
        (reported("Reconcile Error", "True"), "unhealthy"),
        (reported("Reconcile Pending", "True"), "unhealthy"),
        (reported("Reconcile Aborted", "Progressing"), "unhealthy"),
        (reported("Restore Succeeded", "True", errors=True), "healthy"),
        (reported("Migrate Succeeded", "what"), "unknown"),
    ],
)
def test_the_status_is_the_worst_of_operation_and_conditions(of: Object, expected: str) -> None:
    assert status(of) == expected


@given(
    operation=st.sampled_from(
        ["", *map(" ".join, product(["Create", "Reconcile", "Delete"], ["Succeeded", "Processing", "Failed"]))]
    ),
    conditions=st.lists(st.sampled_from(["True", "False", "Unknown", "Progressing"])),
    errors=st.booleans(),
)
def test_the_order_of_conditions_does_not_matter(operation: str, conditions: list[str], errors: bool) -> None:
    expected = status(reported(operation, *conditions, errors=errors))
    assert status(reported(operation, *reversed(conditions), errors=errors)) == expected
    assert expected in {"healthy", "progressing", "unknown", "unhealthy"}


@pytest.mark.parametrize(
    ("labels", "seeds", "changes"),
    [
        ({}, {}, {LABEL: "healthy"}),
        ({LABEL: "healthy", "own": "1"}, {}, {}),
        ({LABEL: "unhealthy"}, {}, {LABEL: "healthy"}),
        ({LABEL: "healthy"}, {"on": "a"}, {"seed.gardener.cloud/a": "true"}),
        (
            {LABEL: "healthy", "seed.gardener.cloud/a": "true", "seed.gardener.cloud/x": "true"},
            {"on": "b", "leaves": "a"},
            {"seed.gardener.cloud/b": "true", "seed.gardener.cloud/x": None},
        ),
        ({LABEL: "healthy", "seed.gardener.cloud/a": "false"}, {"on": "a"}, {"seed.gardener.cloud/a": "true"}),
        ({LABEL: "healthy"}, {"on": "much-too-long-" * 10}, {}),
    ],
)
def test_labels_name_the_seeds_and_no_others(labels: Any, seeds: Any, changes: Object) -> None:
    assert needed_labels(reported(labels=labels, **seeds)) == changes
