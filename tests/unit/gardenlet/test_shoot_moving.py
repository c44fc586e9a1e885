"""When a Shoot may move, and in which order it leaves its seed."""

from typing import Any

import pytest

from agent.gardenlet.flow.graph import TaskFailure, Walk
from agent.gardenlet.shoot.main.flows.migrate import MIGRATE
from agent.gardenlet.shoot.main.flows.reconcile import RECONCILE, RESTORE
from agent.gardenlet.shoot.main.rules.moving import Progress, after_return, operation_on, unavailable, was_taken_back
from gardener.garden.shoots import is_settled
from kube.objects import Object

GOOD = ("GardenletReady", "SeedSystemComponentsHealthy")


def shoot(
    *,
    present: str = "a",
    wanted: str = "b",
    deleting: bool = False,
    asleep: bool = False,
    asked: str = "reconcile",
    **status: Any,
) -> Object:
    meta = {
        "name": "s",
        "annotations": {"gardener.cloud/operation": asked},
        **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
    }
    spec = {"seedName": wanted, "hibernation": {"enabled": asleep}}
    return {"metadata": meta, "spec": spec, "status": {"seedName": present, **status}}


def last(kind: str, state: str = "Succeeded") -> Object:
    return {"lastOperation": {"type": kind, "state": state}}


def rotating(phase: str) -> Object:
    return {"credentials": {"rotation": {"serviceAccountKey": {"phase": phase}}}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (shoot(**last("Reconcile")), "Migrate"),
        (shoot(**last("Reconcile"), deleting=True), "Delete"),
        (shoot(**last("Migrate", "Error"), deleting=True), "Migrate"),
        # What is between awake and asleep gets there first.
        (shoot(**last("Reconcile"), asleep=True), "Reconcile"),
        (shoot(**last("Reconcile"), hibernated=True), "Reconcile"),
        (shoot(**last("Reconcile"), asleep=True, hibernated=True), "Migrate"),
        (shoot(**last("Migrate", "Aborted"), asleep=True), "Migrate"),
        # A step of a rotation ends first; between the steps there is nothing to wait for.
        (shoot(**last("Reconcile", "Error"), **rotating("Preparing")), "Reconcile"),
        (shoot(**last("Reconcile", "Error"), **rotating("Completing")), "Reconcile"),
        (shoot(**last("Reconcile"), asked="rotate-ca-start"), "Reconcile"),
        (shoot(**last("Migrate", "Error"), asked="rotate-ca-start"), "Migrate"),
        (shoot(**last("Reconcile"), **rotating("Prepared")), "Migrate"),
        (shoot(**last("Reconcile"), **rotating("WaitingForWorkersRollout")), "Migrate"),
        (shoot(**last("Reconcile"), **rotating("Preparing"), deleting=True), "Delete"),
        (shoot(**last("Migrate", "Error"), **rotating("Preparing")), "Migrate"),
        # What has failed moves all the same, for example off the Seed that makes it fail.
        (shoot(**last("Reconcile", "Failed")), "Migrate"),
        # It goes on before it has arrived: only what was saved of it has its keys for sure.
        (shoot(**last("Restore", "Error"), asleep=True), "Migrate"),
        (shoot(**last("Restore"), asleep=True), "Reconcile"),
        (shoot(present="b", **last("Migrate")), "Restore"),
        (shoot(present="b", **last("Restore", "Aborted")), "Restore"),
        # It was taken back after it has begun: it comes back as it would come to another Seed.
        (shoot(wanted="a", **last("Migrate", "Error")), "Migrate"),
        (shoot(wanted="a", **last("Migrate")), "Restore"),
        # Extensions delete only what they have: first it is whole again.
        (shoot(present="b", **last("Restore", "Error"), deleting=True), "Restore"),
        (shoot(wanted="a", present="b", **last("Restore", "Error"), deleting=True), "Migrate"),
        (shoot(present="b", **last("Restore"), deleting=True), "Delete"),
    ],
)
def test_what_is_done_for_it(obj: Object, expected: str) -> None:
    assert operation_on(obj) == expected


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (shoot(wanted="a", **last("Migrate", "Failed")), ["Reconcile", "Restore", "Migrate"]),
        (shoot(wanted="a", **last("Migrate", "Error"), deleting=True), ["Delete", "Restore", "Migrate"]),
    ],
)
def test_what_is_taken_back_is_whole_again_on_the_shortest_way(obj: Object, expected: list[str]) -> None:
    assert was_taken_back(obj)
    assert [after_return(obj, each) for each in Progress] == expected


@pytest.mark.parametrize(
    "obj",
    [
        shoot(**last("Migrate", "Error")),
        shoot(wanted="a", **last("Migrate")),
        shoot(wanted="a", **last("Restore", "Error")),
        shoot(wanted="a", **last("Reconcile")),
    ],
)
def test_what_is_not_taken_back(obj: Object) -> None:
    assert not was_taken_back(obj)


@pytest.mark.parametrize(
    ("operation", "is_settled_now"),
    [
        (last("Create"), True),
        (last("Reconcile", "Error"), True),
        (last("Migrate", "Processing"), False),
        (last("Migrate"), False),
        (last("Restore", "Processing"), False),
        (last("Restore", "Failed"), False),
        (last("Restore"), True),
    ],
)
def test_when_all_that_it_has_is_where_it_is(operation: Object, is_settled_now: bool) -> None:
    assert is_settled(shoot(**operation)) is is_settled_now


def seed(*, deleting: bool = False, version: str = "v1", bad: str = "", backup: bool = True) -> Object:
    meta: Object = {"name": "b", "generation": 2}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": each, "status": "False" if each == bad else "True"} for each in GOOD]
    status = {"gardener": {"version": version}, "observedGeneration": 2, "conditions": conditions}
    return {"metadata": meta, "spec": {"backup": {"provider": "p"}} if backup else {}, "status": status}


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        (seed(), ""),
        (None, "seed does not exist"),
        (seed(deleting=True), "seed is marked to be deleted"),
        (seed(version="v0"), "observing Gardener version not up to date (v0/v1)"),
        (seed(bad=GOOD[0]), 'condition "GardenletReady" has invalid status False (expected True)'),
        (seed(bad=GOOD[1]), 'condition "SeedSystemComponentsHealthy" has invalid status False (expected True)'),
        (seed(backup=False), "seed has no backup bucket, which is required to move Shoots; set spec.backup"),
    ],
)
def test_which_seed_takes_it(found: Object | None, cause: str) -> None:
    reported = unavailable(shoot(), found, version="v1")
    whole = f"destination Seed is not available to host the control plane of Shoot s: {cause}"
    assert reported.startswith(whole) if cause else not reported


REMOVES = {
    *("managed-resources", "machines-released", "extensions-before", "api-server-gone", "extensions-after", "names"),
    *("backup-entry", "etcd-gone", "namespace-goes", "cluster"),
}


@pytest.mark.parametrize(
    ("failing", "stay"),
    [
        # Machines are saved when nothing changes them any more.
        ("machine-controller-manager-gone", REMOVES),
        ("extensions-migrated", REMOVES),
        ("state", REMOVES),
        ("snapshot", {"backup-entry", "etcd-gone", "namespace-goes", "cluster"}),
        ("machines-released", {"namespace-goes", "cluster"}),
        ("backup-entry-moved", {"etcd-gone", "namespace-goes", "cluster"}),
        ("names", {"etcd-gone", "namespace-goes", "cluster"}),
        ("namespace-gone", {"cluster"}),
    ],
)
def test_what_can_not_be_made_again_goes_last(failing: str, stay: set[str]) -> None:
    walk, started = Walk(MIGRATE), set[str]()
    while tasks := walk.start():
        for each in tasks:
            started.add(each.id)
            walk.end(each, TaskFailure(each.name, RuntimeError(), "") if each.id == failing else None)
    assert REMOVES - started == stay


def test_it_arrives_by_the_tasks_of_a_reconciliation() -> None:
    assert RESTORE.tasks == RECONCILE.tasks
    assert (RESTORE.name, RECONCILE.name) == ("Shoot cluster restoration", "Shoot cluster reconciliation")
