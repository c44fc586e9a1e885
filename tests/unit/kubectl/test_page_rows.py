"""Rows of `kubectl gardener page`: state and message of each object, the order of the list, and its filters."""

from typing import Any

import pytest

from gardener.api.garden import SEEDS, SHOOTS
from gardener.api.kinds import MANAGED_RESOURCES
from gardener.overview.states import ResourceState
from kube.resources import Resource
from kubectl.garden.page.rows import Query, listing_of, row_of

READY, FAILED, UNHEALTHY = ResourceState.READY, ResourceState.FAILED, ResourceState.UNHEALTHY
PENDING, PROGRESSING = ResourceState.PENDING, ResourceState.PROGRESSING
DELETING, SUSPENDED = ResourceState.DELETING, ResourceState.SUSPENDED

SUCCEEDED = {"type": "Reconcile", "state": "Succeeded", "description": "done"}
CREATING = {"type": "Create", "state": "Processing", "progress": 10, "description": "Waiting\nuntil  etcd is ready"}
BROKEN = {"type": "Create", "state": "Error", "description": "a task failed"}


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": "R",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def shoot(
    name: str = "s", *, deleting: bool = False, confirmed: bool = True, ignored: bool = False, **status: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "garden-dev", "generation": 2}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        metadata["annotations"] = {"confirmation.gardener.cloud/deletion": "true"} if confirmed else {}
    if ignored:
        metadata["annotations"] = {"shoot.gardener.cloud/ignore": "true"}
    return {"metadata": metadata, "status": {"observedGeneration": 2, **status}}


ON_SEED: dict[str, Any] = {"seedName": "meadow"}


@pytest.mark.parametrize(
    ("obj", "state", "message"),
    [
        (shoot(), PENDING, "waits for a Seed"),
        (shoot(**ON_SEED, lastOperation=CREATING), PROGRESSING, "10 %: Waiting until etcd is ready"),
        (shoot(lastOperation=BROKEN), FAILED, "a task failed"),
        (shoot(lastOperation=BROKEN, lastErrors=[{"description": "no quota"}]), FAILED, "no quota"),
        (shoot(deleting=True, lastOperation=BROKEN), FAILED, "a task failed"),
        (shoot(**ON_SEED, deleting=True, lastOperation=CREATING), DELETING, "10 %: Waiting until etcd is ready"),
        (shoot(deleting=True, confirmed=False), DELETING, "the deletion waits for its confirmation"),
        (shoot(**ON_SEED, lastOperation=SUCCEEDED, conditions=[condition("A", "True")]), READY, ""),
        (shoot(**ON_SEED, lastOperation=SUCCEEDED, conditions=[condition("A", "False", "x")]), UNHEALTHY, "A: x"),
        (shoot(**ON_SEED, lastOperation=SUCCEEDED, hibernated=True), SUSPENDED, "hibernated"),
        (
            shoot(**ON_SEED, ignored=True, lastOperation=SUCCEEDED),
            SUSPENDED,
            "ignored because of the annotation shoot.gardener.cloud/ignore",
        ),
    ],
)
def test_the_state_of_a_shoot(obj: dict[str, Any], state: ResourceState, message: str) -> None:
    row = row_of("", SHOOTS, obj)
    assert (row.state, row.message) == (state, message)


@pytest.mark.parametrize(
    ("obj", "state", "message"),
    [
        (shoot(), PENDING, "no gardenlet has processed it yet"),
        (shoot(lastOperation=CREATING), PROGRESSING, "Create processing: Waiting until etcd is ready"),
        (shoot(lastOperation=BROKEN), FAILED, "Create error: a task failed"),
        (shoot(deleting=True, lastOperation=SUCCEEDED), DELETING, "Reconcile succeeded: done"),
        (shoot(lastOperation=SUCCEEDED, conditions=[condition("A", "Unknown", "x")]), PROGRESSING, "A: R: x"),
        (
            shoot(lastOperation=SUCCEEDED, conditions=[condition("A", "Progressing"), condition("B", "False", "y")]),
            UNHEALTHY,
            "B: R: y",
        ),
        (shoot(lastOperation=SUCCEEDED, conditions=[condition("A", "True")]), READY, ""),
    ],
)
def test_the_state_of_a_seed(obj: dict[str, Any], state: ResourceState, message: str) -> None:
    row = row_of("", SEEDS, obj)
    assert (row.state, row.message) == (state, message)


def test_a_row_has_the_time_of_the_last_change() -> None:
    changing = {**SUCCEEDED, "lastUpdateTime": "2026-03-01T00:00:00Z"}
    assert (
        row_of("", SHOOTS, shoot(lastOperation=changing, conditions=[condition("A", "True")])).changed
        == "2026-03-01T00:00:00Z"
    )
    assert row_of("", SHOOTS, shoot()).changed == ""


def rows() -> list[Any]:
    seed = {
        "metadata": {"name": "meadow"},
        "status": {"lastOperation": SUCCEEDED, "conditions": [condition("G", "False", "lost")]},
    }
    return [
        row_of("", SHOOTS, shoot("fine", **ON_SEED, lastOperation=SUCCEEDED)),
        row_of("meadow", MANAGED_RESOURCES, {"metadata": {"name": "mr", "namespace": "garden"}}),
        row_of("", SHOOTS, shoot("broken", lastOperation=BROKEN)),
        row_of("", SEEDS, seed),
    ]


def test_problems_come_first() -> None:
    listing = listing_of(rows(), Query())
    assert [row.key.name for row in listing.page.items] == ["broken", "meadow", "mr", "fine"]
    assert listing.kinds == {"Shoot": 2, "Seed": 1, "ManagedResource": 1}
    assert listing.states == {READY: 1, PENDING: 1, FAILED: 1, UNHEALTHY: 1}


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"q": "MEADOW"}, ["meadow", "mr"]),
        ({"q": "garden-dev task"}, ["broken"]),
        ({"kind": "Shoot"}, ["broken", "fine"]),
        ({"kind": "Shoot", "state": "Ready"}, ["fine"]),
        ({"kind": "Secret", "state": "odd", "page": "x"}, ["broken", "meadow", "mr", "fine"]),
    ],
)
def test_filters(parameters: dict[str, str], names: list[str]) -> None:
    assert [row.key.name for row in listing_of(rows(), Query.of(parameters)).page.items] == names


def test_links_keep_the_other_filters() -> None:
    query = Query.of({"q": "a b", "kind": "Seed"})
    assert query.link(state="Ready") == "?q=a+b&kind=Seed&state=Ready"
    assert query.link(kind="", page=2) == "?q=a+b&page=2"


@pytest.mark.parametrize("resource", [SHOOTS, SEEDS])
def test_of_a_long_message_a_row_keeps_begin_and_end(resource: Resource) -> None:
    operation = {**BROKEN, "description": f"begin {'x' * (32 << 10)} end"}
    message = row_of("", resource, shoot(lastOperation=operation)).message
    assert len(message) == 4000
    assert "begin" in message
    assert message.endswith("end")
