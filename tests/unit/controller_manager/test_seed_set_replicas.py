"""How far a replica of a ManagedSeedSet is, and which of several is removed first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardener.garden.managed_seed_sets import (
    Replica,
    ReplicaState,
    ShootHealth,
    health_of,
    is_seed_ready,
    managed_seed_state,
    name_of,
    next_ordinal,
    ordinal_of,
    removal_order,
    shoot_state,
)
from kit.seed_sets import managed_seed, ready, replica_shoot, seed
from kube.objects import Object

PRIORITY = "seedmanagement.gardener.cloud/priority"
PROTECTED = "seedmanagement.gardener.cloud/protect-from-deletion"
OPERATION = "gardener.cloud/operation"


# --- names


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("test-0", 0),
        ("test-12", 12),
        ("a-b-3", 3),
        ("test-2147483647", 2147483647),
        ("test-2147483648", -1),
        ("test-01", -1),
        ("test", -1),
        ("foreign-x", -1),
        ("test-", -1),
        ("", -1),
    ],
)
def test_the_ordinal_is_the_number_at_the_end(name: str, ordinal: int) -> None:
    assert ordinal_of(name) == ordinal


@pytest.mark.parametrize(
    ("next_number", "names", "expected"),
    [
        (0, [], 0),
        (2, ["test-0"], 2),
        (0, ["test-0", "test-4"], 5),
        (7, ["test-0", "test-4"], 7),
        (0, ["foreign"], 0),
    ],
)
def test_the_next_number_was_never_given(next_number: int, names: list[str], expected: int) -> None:
    assert next_ordinal(next_number, names) == expected


@given(st.integers(0, 1000), st.lists(st.integers(0, 1000)))
def test_numbers_only_grow(next_number: int, ordinals: list[int]) -> None:
    chosen = next_ordinal(next_number, (name_of("set", ordinal) for ordinal in ordinals))
    assert chosen >= next_number
    assert all(chosen > ordinal for ordinal in ordinals)


# --- states


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (replica_shoot("s", ""), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Create Processing"), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Create Error"), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Create Succeeded"), ReplicaState.SHOOT_RECONCILED),
        (replica_shoot("s", "Reconcile Succeeded"), ReplicaState.SHOOT_RECONCILED),
        (replica_shoot("s", "Reconcile Succeeded", observed=False), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Restore Succeeded"), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Create Failed"), ReplicaState.SHOOT_RECONCILE_FAILED),
        (replica_shoot("s", "Reconcile Failed"), ReplicaState.SHOOT_RECONCILE_FAILED),
        (replica_shoot("s", "Reconcile Failed", observed=False), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Reconcile Failed", annotations={OPERATION: "retry"}), ReplicaState.SHOOT_RECONCILING),
        (
            replica_shoot("s", "Reconcile Failed", annotations={OPERATION: "maintain"}),
            ReplicaState.SHOOT_RECONCILE_FAILED,
        ),
        (replica_shoot("s", "Delete Failed"), ReplicaState.SHOOT_RECONCILING),
        (replica_shoot("s", "Create Succeeded", deleting=True), ReplicaState.SHOOT_DELETING),
        (replica_shoot("s", "Create Failed", deleting=True), ReplicaState.SHOOT_DELETING),
        (replica_shoot("s", "Delete Processing", deleting=True), ReplicaState.SHOOT_DELETING),
        (replica_shoot("s", "Delete Failed", deleting=True), ReplicaState.SHOOT_DELETE_FAILED),
        (replica_shoot("s", "Delete Failed", deleting=True, observed=False), ReplicaState.SHOOT_DELETING),
        (
            replica_shoot("s", "Delete Failed", deleting=True, annotations={OPERATION: "retry"}),
            ReplicaState.SHOOT_DELETING,
        ),
        (replica_shoot("s", "Delete Succeeded", deleting=True), ReplicaState.SHOOT_DELETING),
    ],
)
def test_states_of_a_shoot_alone(of: Object, expected: ReplicaState) -> None:
    assert shoot_state(of) is expected
    assert Replica(shoot=of).state is expected


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (managed_seed("s"), ReplicaState.MANAGED_SEED_REGISTERED),
        (managed_seed("s", ""), ReplicaState.MANAGED_SEED_PREPARING),
        (managed_seed("s", "False"), ReplicaState.MANAGED_SEED_PREPARING),
        (managed_seed("s", "Unknown"), ReplicaState.MANAGED_SEED_PREPARING),
        (managed_seed("s", observed=False), ReplicaState.MANAGED_SEED_PREPARING),
        (managed_seed("s", deleting=True), ReplicaState.MANAGED_SEED_DELETING),
        (managed_seed("s", "", deleting=True), ReplicaState.MANAGED_SEED_DELETING),
    ],
)
def test_the_managed_seed_counts_where_there_is_one(of: Object, expected: ReplicaState) -> None:
    assert managed_seed_state(of) is expected
    assert Replica(shoot=replica_shoot("s", "Create Failed"), managed_seed=of).state is expected


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (None, False),
        (seed("s"), True),
        (seed("s", observed=False), False),
        (seed("s", deleting=True), False),
        (seed("s", conditions={"GardenletReady": "Unknown"}), False),
        (seed("s", conditions={"GardenletReady": "Progressing"}), False),
        (seed("s", conditions={"SeedSystemComponentsHealthy": "False"}), False),
        (seed("s", conditions={"BackupBucketsReady": "True"}), True),
        (seed("s", conditions={"BackupBucketsReady": "Unknown"}), False),
        (seed("s", conditions={"ExtensionsReady": "False"}), True),
    ],
)
def test_when_a_seed_is_ready(of: Object | None, *, expected: bool) -> None:
    assert is_seed_ready(of) is expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (None, ShootHealth.PROGRESSING),
        ("healthy", ShootHealth.HEALTHY),
        ("progressing", ShootHealth.PROGRESSING),
        ("unknown", ShootHealth.UNKNOWN),
        ("unhealthy", ShootHealth.UNHEALTHY),
        ("HEALTHY", ShootHealth.UNKNOWN),
        ("", ShootHealth.UNKNOWN),
        ("something", ShootHealth.UNKNOWN),
    ],
)
def test_the_label_states_how_healthy_a_shoot_is(label: str | None, expected: ShootHealth) -> None:
    assert health_of(replica_shoot("s", health=label)) is expected


@pytest.mark.parametrize(
    ("replica", "expected"),
    [
        (ready("s"), True),
        (Replica(shoot=replica_shoot("s"), seed=seed("s")), False),
        (Replica(shoot=replica_shoot("s"), managed_seed=managed_seed("s")), False),
        (Replica(shoot=replica_shoot("s"), managed_seed=managed_seed("s", ""), seed=seed("s")), False),
        (
            Replica(shoot=replica_shoot("s", health="progressing"), managed_seed=managed_seed("s"), seed=seed("s")),
            False,
        ),
        # What its Shoot does meanwhile is reported by the label alone.
        (Replica(shoot=replica_shoot("s", "Reconcile Failed"), managed_seed=managed_seed("s"), seed=seed("s")), True),
    ],
)
def test_when_a_replica_is_ready(replica: Replica, *, expected: bool) -> None:
    assert replica.is_ready is expected


@pytest.mark.parametrize(
    ("on_shoot", "on_managed_seed", "expected"),
    [
        ({}, {}, False),
        ({PROTECTED: "true"}, {}, True),
        ({}, {PROTECTED: "true"}, True),
        ({PROTECTED: "True"}, {PROTECTED: "false"}, False),
    ],
)
def test_either_object_protects_a_replica(
    on_shoot: dict[str, str], on_managed_seed: dict[str, str], *, expected: bool
) -> None:
    replica = Replica(
        shoot=replica_shoot("s", annotations=on_shoot), managed_seed=managed_seed("s", annotations=on_managed_seed)
    )
    assert replica.is_protected is expected


@pytest.mark.parametrize(
    ("on_shoot", "on_managed_seed", "expected"),
    [
        (None, None, 3),
        ("7", None, 7),
        ("7", "-1", -1),
        ("7", "x", 3),
        ("", None, 3),
        ("2147483648", None, 3),
        ("-2147483648", None, -2147483648),
    ],
)
def test_the_priority_is_that_of_the_managed_seed(
    on_shoot: str | None, on_managed_seed: str | None, expected: int
) -> None:
    replica = Replica(
        shoot=replica_shoot("s", annotations={} if on_shoot is None else {PRIORITY: on_shoot}),
        managed_seed=managed_seed("s", annotations={} if on_managed_seed is None else {PRIORITY: on_managed_seed}),
    )
    assert replica.priority == expected


# --- order of removal


def _unready(name: str) -> Replica:
    return Replica(
        shoot=replica_shoot(name),
        managed_seed=managed_seed(name),
        seed=seed(name, conditions={"GardenletReady": "False"}),
    )


def _with_health(name: str, health: str) -> Replica:
    return Replica(shoot=replica_shoot(name, health=health), managed_seed=managed_seed(name), seed=seed(name))


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ([ready("s-0"), ready("s-1")], ["s-0", "s-1"]),
        ([ready("s-10"), ready("s-9")], ["s-9", "s-10"]),
        ([ready("s-0"), _unready("s-1")], ["s-1", "s-0"]),
        ([_with_health("s-0", "progressing"), _with_health("s-1", "unhealthy")], ["s-1", "s-0"]),
        ([ready("s-0"), Replica(shoot=replica_shoot("s-1", ""))], ["s-1", "s-0"]),
        (
            [Replica(shoot=replica_shoot("s-0", "")), Replica(shoot=replica_shoot("s-1", "Create Failed"))],
            ["s-1", "s-0"],
        ),
        ([ready("s-0"), ready("s-1", annotations={PRIORITY: "2"})], ["s-1", "s-0"]),
        # A priority counts more than how far a replica is.
        ([ready("s-0"), Replica(shoot=replica_shoot("s-1", "", annotations={PRIORITY: "20"}))], ["s-0", "s-1"]),
        # One that goes already counts more than all.
        ([ready("s-0", annotations={PRIORITY: "0"}), ready("s-1", deleting=True)], ["s-1", "s-0"]),
        ([ready("foreign"), ready("s-0")], ["foreign", "s-0"]),
    ],
)
def test_what_is_removed_first(replicas: list[Replica], expected: list[str]) -> None:
    assert [replica.name for replica in sorted(replicas, key=removal_order)] == expected
    replicas.reverse()
    assert [replica.name for replica in sorted(replicas, key=removal_order)] == expected
