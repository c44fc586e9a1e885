"""What a pass over a ManagedSeedSet does next."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.controller_manager.managed_seed_set.rules.steps import (
    Action,
    Decision,
    Idle,
    NoneDeletable,
    Rollout,
    Scheduled,
    SetObservation,
    Step,
    decide,
)
from gardener.garden.managed_seed_sets import Pending, Reason, Replica
from kit.seed_sets import managed_seed, ready, replica_shoot, seed
from kube.objects import Object

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PRIORITY = "seedmanagement.gardener.cloud/priority"
PROTECTED = {"seedmanagement.gardener.cloud/protect-from-deletion": "true"}
EMPTY = SetObservation(
    namespace="garden",
    name="test",
    replicas=(),
    target=0,
    pending=None,
    next_number=0,
    used_seeds=frozenset(),
    now=NOW,
    max_retries=3,
    pause=1800.0,
)


def observed(*replicas: Replica, target: int | None = None, pending: str = "", **fields: Any) -> SetObservation:
    """Args: pending: name, reason, and retries of the pending replica."""
    words = pending.split()
    waits = (
        Pending(name=words[0], reason=words[1], since=NOW, retries=int(words[2]) if len(words) > 2 else 0)
        if words
        else None
    )
    return replace(
        EMPTY, replicas=replicas, target=len(replicas) if target is None else target, pending=waits, **fields
    )


def step(decision: Decision) -> Step:
    assert isinstance(decision, Step)
    return decision


def done(decision: Decision) -> tuple[Action, str, Reason, int]:
    made = step(decision)
    return made.action, made.name, made.reason, made.retries


def registered(name: str, of_seed: Object | None = None, *, health: str = "healthy") -> Replica:
    return Replica(shoot=replica_shoot(name, health=health), managed_seed=managed_seed(name), seed=of_seed)


# --- one replica at a time


@pytest.mark.parametrize(
    ("replica", "action", "reason", "event", "message"),
    [
        (
            Replica(shoot=replica_shoot("test-0", "")),
            Action.WAIT,
            Reason.SHOOT_RECONCILING,
            "WaitingForShootReconciled",
            "Waiting for Shoot garden/test-0 to be reconciled",
        ),
        (
            Replica(shoot=replica_shoot("test-0")),
            Action.CREATE_MANAGED_SEED,
            Reason.MANAGED_SEED_PREPARING,
            "CreatingManagedSeed",
            "Creating ManagedSeed garden/test-0",
        ),
        (
            Replica(shoot=replica_shoot("test-0"), managed_seed=managed_seed("test-0", "")),
            Action.WAIT,
            Reason.MANAGED_SEED_PREPARING,
            "WaitingForManagedSeedRegistered",
            "Waiting for ManagedSeed garden/test-0 to be registered",
        ),
        (
            Replica(shoot=replica_shoot("test-0"), managed_seed=managed_seed("test-0", deleting=True)),
            Action.WAIT,
            Reason.MANAGED_SEED_DELETING,
            "WaitingForManagedSeedDeleted",
            "Waiting for ManagedSeed garden/test-0 to be deleted",
        ),
        (
            registered("test-0"),
            Action.WAIT,
            Reason.SEED_NOT_READY,
            "WaitingForSeedReady",
            "Waiting for Seed test-0 to be ready",
        ),
        (
            registered("test-0", seed("test-0"), health="progressing"),
            Action.WAIT,
            Reason.SHOOT_NOT_HEALTHY,
            "WaitingForShootHealthy",
            "Waiting for Shoot garden/test-0 to be healthy",
        ),
        (
            Replica(shoot=replica_shoot("test-0", deleting=True)),
            Action.WAIT,
            Reason.SHOOT_DELETING,
            "WaitingForShootDeleted",
            "Waiting for Shoot garden/test-0 to be deleted",
        ),
        (
            Replica(shoot=replica_shoot("test-0", "Create Failed")),
            Action.RETRY_SHOOT,
            Reason.SHOOT_RECONCILING,
            "RetryingShootReconciliation",
            "Retrying Shoot garden/test-0 reconciliation",
        ),
        (
            Replica(shoot=replica_shoot("test-0", "Delete Failed", deleting=True)),
            Action.RETRY_SHOOT,
            Reason.SHOOT_DELETING,
            "RetryingShootDeletion",
            "Retrying Shoot garden/test-0 deletion",
        ),
    ],
)
@pytest.mark.parametrize("pending", ["", "test-0 SeedNotReady"])
def test_what_a_replica_waits_for(
    replica: Replica, action: Action, reason: Reason, event: str, message: str, pending: str
) -> None:
    for target in (1, 2):
        if target == 2 and not pending:
            continue  # one more is made first
        made = step(decide(observed(replica, target=target, pending=pending)))
        assert (made.action, made.name, made.reason) == (action, "test-0", reason)
        assert (made.event, made.message) == (event, message)


def test_nothing_is_left_to_do() -> None:
    assert decide(observed()) == Idle()
    assert decide(observed(ready("test-0"), ready("test-1"))) == Idle()
    assert decide(observed(ready("test-0"), pending="test-0 ShootNotHealthy")) == Idle()
    assert decide(observed(ready("test-0"), pending="test-7 ShootDeleting")) == Idle()


@pytest.mark.parametrize(
    ("replicas", "next_number", "name"),
    [
        ([], 0, "test-0"),
        ([], 3, "test-3"),
        ([ready("test-0")], 1, "test-1"),
        ([ready("test-0"), ready("test-4")], 0, "test-5"),
        ([ready("test-0"), ready("foreign")], 2, "test-2"),
    ],
)
def test_a_set_grows_by_one(replicas: list[Replica], next_number: int, name: str) -> None:
    made = step(decide(observed(*replicas, target=9, next_number=next_number)))
    assert (made.action, made.name, made.reason) == (Action.CREATE_SHOOT, name, Reason.SHOOT_RECONCILING)
    assert (made.event, made.message) == ("CreatingShoot", f"Creating Shoot garden/{name}")


def test_a_set_grows_although_one_that_was_ready_is_not_any_more_but_waits_for_a_new_one() -> None:
    unready, new = registered("test-0"), Replica(shoot=replica_shoot("test-1", ""))
    assert done(decide(observed(unready, target=2, next_number=1)))[:2] == (Action.CREATE_SHOOT, "test-1")
    waits = decide(observed(unready, new, target=3, pending="test-1 ShootReconciling"))
    assert done(waits)[:2] == (Action.WAIT, "test-1")


def test_those_that_are_not_ready_are_seen_to_by_their_numbers() -> None:
    replicas = [ready("test-10"), registered("test-9"), Replica(shoot=replica_shoot("test-2", "Create Failed"))]
    assert done(decide(observed(*replicas)))[:2] == (Action.RETRY_SHOOT, "test-2")
    assert done(decide(observed(*replicas[:2])))[:2] == (Action.WAIT, "test-9")


def test_the_pending_one_comes_first() -> None:
    replicas = [Replica(shoot=replica_shoot("test-0", "Create Failed")), registered("test-1")]
    assert done(decide(observed(*replicas, pending="test-1 SeedNotReady")))[:2] == (Action.WAIT, "test-1")


# --- fewer


@pytest.mark.parametrize(
    ("replica", "action", "reason"),
    [
        (ready("test-0"), Action.DELETE_MANAGED_SEED, Reason.MANAGED_SEED_DELETING),
        (registered("test-0"), Action.DELETE_MANAGED_SEED, Reason.MANAGED_SEED_DELETING),
        (Replica(shoot=replica_shoot("test-0")), Action.DELETE_SHOOT, Reason.SHOOT_DELETING),
        (Replica(shoot=replica_shoot("test-0", "")), Action.DELETE_SHOOT, Reason.SHOOT_DELETING),
        (Replica(shoot=replica_shoot("test-0", "Create Failed")), Action.DELETE_SHOOT, Reason.SHOOT_DELETING),
        (Replica(shoot=replica_shoot("test-0", deleting=True)), Action.WAIT, Reason.SHOOT_DELETING),
        (
            Replica(shoot=replica_shoot("test-0", "Delete Failed", deleting=True)),
            Action.RETRY_SHOOT,
            Reason.SHOOT_DELETING,
        ),
        # The cluster of a Seed stays as long as the Seed.
        (Replica(shoot=replica_shoot("test-0"), seed=seed("test-0")), Action.WAIT, Reason.MANAGED_SEED_DELETING),
        (Replica(shoot=replica_shoot("test-0", ""), seed=seed("test-0")), Action.WAIT, Reason.MANAGED_SEED_DELETING),
    ],
)
@pytest.mark.parametrize("reason_before", ["", "ShootReconciling", "ShootNotHealthy", "ManagedSeedDeleting"])
def test_what_is_done_to_one_too_many(replica: Replica, action: Action, reason: Reason, reason_before: str) -> None:
    pending = f"test-0 {reason_before}" if reason_before else ""
    if replica.is_going and not pending:
        # It is removed once more, which changes nothing.
        action, reason = Action.DELETE_SHOOT, Reason.SHOOT_DELETING
    assert done(decide(observed(replica, target=0, pending=pending)))[:3] == (action, "test-0", reason)


def test_one_that_is_not_waited_for_yet_and_that_goes_already_is_taken() -> None:
    replicas = [ready("test-0"), Replica(shoot=replica_shoot("test-1", deleting=True))]
    assert done(decide(observed(*replicas, target=1)))[:3] == (Action.DELETE_SHOOT, "test-1", Reason.SHOOT_DELETING)


def test_the_one_whose_removal_has_begun_goes_on_even_if_another_would_be_chosen_now() -> None:
    half = Replica(shoot=replica_shoot("test-1", "", annotations={PRIORITY: "9"}))
    chosen = decide(observed(ready("test-0"), half, target=1, pending="test-1 ManagedSeedDeleting"))
    assert done(chosen)[:2] == (Action.DELETE_SHOOT, "test-1")
    protected = Replica(shoot=replica_shoot("test-1", annotations=PROTECTED))
    chosen = decide(observed(ready("test-0"), protected, target=1, pending="test-1 ManagedSeedDeleting"))
    assert done(chosen)[:2] == (Action.DELETE_SHOOT, "test-1")
    # One that had only come so far when the set was made smaller is as protected as any other.
    chosen = decide(observed(ready("test-0"), protected, target=1, pending="test-1 ShootReconciling"))
    assert done(chosen)[:2] == (Action.DELETE_MANAGED_SEED, "test-0")


def test_a_managed_seed_that_came_back_is_looked_at_again() -> None:
    back = decide(observed(ready("test-0"), target=0, pending="test-0 ManagedSeedDeleting", used_seeds={"test-0"}))
    assert back == NoneDeletable(protected=[], in_use=["test-0"])


def _worked_example(**annotations: dict[str, str]) -> list[Replica]:
    """r0 has Shoots, r1 is empty, r2 is protected, r3 is being made."""
    return [
        ready("test-0"),
        ready("test-1", annotations=annotations.get("r1")),
        ready("test-2", annotations=PROTECTED),
        Replica(shoot=replica_shoot("test-3", "", annotations=annotations.get("r3"))),
    ]


@pytest.mark.parametrize(
    ("replicas", "target", "expected"),
    [
        (_worked_example(), 3, (Action.DELETE_SHOOT, "test-3")),
        (_worked_example()[:3], 2, (Action.DELETE_MANAGED_SEED, "test-1")),
        (_worked_example(r1={PRIORITY: "10"}), 3, (Action.DELETE_SHOOT, "test-3")),
        (_worked_example(r3={PRIORITY: "20"}), 3, (Action.DELETE_MANAGED_SEED, "test-1")),
    ],
)
def test_who_goes(replicas: Sequence[Replica], target: int, expected: tuple[Action, str]) -> None:
    assert done(decide(observed(*replicas, target=target, used_seeds={"test-0"})))[:2] == expected


def test_none_goes_that_is_protected_or_in_use() -> None:
    replicas = [ready("test-0"), ready("test-2", annotations=PROTECTED)]
    refused = decide(observed(*replicas, target=1, used_seeds={"test-0"}))
    assert refused == NoneDeletable(protected=["test-2"], in_use=["test-0"])
    by_shoot = Replica(shoot=replica_shoot("test-0", "", annotations=PROTECTED))
    assert isinstance(decide(observed(by_shoot, target=0)), NoneDeletable)
    # Both count as long as it is not removed already.
    going = ready("test-0", annotations=PROTECTED, deleting=True)
    assert done(decide(observed(going, target=0, used_seeds={"test-0"})))[:2] == (
        Action.DELETE_MANAGED_SEED,
        "test-0",
    )


# --- retries


FAILED = Replica(shoot=replica_shoot("test-0", "Create Failed"))
RUNNING = Replica(shoot=replica_shoot("test-0", "Create Processing"))
DELETE_FAILED = Replica(shoot=replica_shoot("test-0", "Delete Failed", deleting=True))


def test_so_many_retries_and_then_a_pause() -> None:
    pending = ""
    for retries in (1, 2, 3):
        again = decide(observed(FAILED, pending=pending))
        assert done(again) == (Action.RETRY_SHOOT, "test-0", Reason.SHOOT_RECONCILING, retries)
        running = decide(observed(RUNNING, pending=f"test-0 ShootReconciling {retries}"))
        assert done(running) == (Action.WAIT, "test-0", Reason.SHOOT_RECONCILING, retries)
        pending = f"test-0 ShootReconciling {retries}"
    given_up = step(decide(observed(FAILED, pending=pending)))
    assert done(given_up) == (Action.WAIT, "test-0", Reason.SHOOT_RECONCILE_FAILED, 3)
    assert given_up.event == "NotRetryingShootReconciliation"
    assert given_up.message == "Not retrying Shoot garden/test-0 reconciliation since max retries have been reached"
    assert given_up.again_after == 1800


@pytest.mark.parametrize(
    ("retries", "waited", "again_after"),
    [(3, 0, 1800), (3, 1799, 1), (3, 1800, None), (6, 1800, 1800), (6, 3600, None), (9, 7199, 1), (3000, 28799, 1)],
)
def test_pauses_grow(retries: int, waited: float, again_after: float | None) -> None:
    given_up = observed(FAILED, pending=f"test-0 ShootReconcileFailed {retries}")
    later = replace(given_up, now=NOW + timedelta(seconds=waited))
    if again_after is None:
        assert done(decide(later)) == (Action.RETRY_SHOOT, "test-0", Reason.SHOOT_RECONCILING, retries + 1)
    else:
        assert done(decide(later)) == (Action.WAIT, "test-0", Reason.SHOOT_RECONCILE_FAILED, retries)
        assert step(decide(later)).again_after == again_after


def test_a_new_round_is_requested() -> None:
    given_up = observed(FAILED, pending="test-0 ShootReconcileFailed 3", is_asked=True)
    assert done(decide(given_up)) == (Action.RETRY_SHOOT, "test-0", Reason.SHOOT_RECONCILING, 4)


def test_deletions_are_retried_alike_whether_the_set_shrinks_or_not() -> None:
    for target in (0, 1):
        again = decide(observed(DELETE_FAILED, target=target, pending="test-0 ShootDeleting 2"))
        assert done(again) == (Action.RETRY_SHOOT, "test-0", Reason.SHOOT_DELETING, 3)
        given_up = step(decide(observed(DELETE_FAILED, target=target, pending="test-0 ShootDeleting 3")))
        assert done(given_up) == (Action.WAIT, "test-0", Reason.SHOOT_DELETE_FAILED, 3)
        assert given_up.event == "NotRetryingShootDeletion"
        assert given_up.message == "Not retrying Shoot garden/test-0 deletion since max retries have been reached"


@pytest.mark.parametrize(
    "pending", ["", "test-1 ShootReconciling 2", "test-0 ShootDeleting 2", "test-0 SeedNotReady 2"]
)
def test_retries_of_something_else_do_not_count(pending: str) -> None:
    assert done(decide(observed(FAILED, pending=pending))) == (
        Action.RETRY_SHOOT,
        "test-0",
        Reason.SHOOT_RECONCILING,
        1,
    )


def test_without_retries_it_is_given_up_at_once_and_for_good() -> None:
    given_up = step(decide(observed(FAILED, max_retries=0, is_asked=True)))
    assert done(given_up) == (Action.WAIT, "test-0", Reason.SHOOT_RECONCILE_FAILED, 0)
    assert given_up.again_after is None


def test_a_failed_shoot_is_not_retried_when_it_is_to_go() -> None:
    gone = decide(observed(FAILED, target=0, pending="test-0 ShootReconciling 2"))
    assert done(gone) == (Action.DELETE_SHOOT, "test-0", Reason.SHOOT_DELETING, 0)


def test_one_that_was_repaired_by_hand_goes_on() -> None:
    repaired = decide(observed(Replica(shoot=replica_shoot("test-0")), pending="test-0 ShootReconcileFailed 3"))
    assert done(repaired) == (Action.CREATE_MANAGED_SEED, "test-0", Reason.MANAGED_SEED_PREPARING, 0)


# --- changed templates


def on(name: str, revision: str, of_managed_seed: str = "", **options: Any) -> Replica:
    """Ready, unless options of the Shoot specify otherwise."""
    return Replica(
        shoot=replica_shoot(name, revision=revision, **options),
        managed_seed=managed_seed(name, revision=of_managed_seed or revision),
        seed=seed(name),
    )


NEW = Rollout(current="r1", update="r2")


def test_updates_begin_with_the_highest_number_and_keep_to_the_partition() -> None:
    replicas = [on("test-0", "r1"), on("test-1", "r1"), on("test-2", "r1"), on("test-10", "r2"), on("foreign", "r1")]
    first = step(decide(observed(*replicas, rollout=NEW)))
    assert (first.action, first.name, first.reason) == (Action.UPDATE_SHOOT, "test-2", Reason.SHOOT_RECONCILING)
    assert (first.event, first.message) == ("UpdatingShoot", "Updating Shoot garden/test-2")
    assert decide(observed(*replicas, rollout=replace(NEW, partition=3))) == Idle()
    assert decide(observed(*replicas)) == Idle()
    done_with_it = [on("test-0", "r1"), on("test-1", "r2"), on("foreign", "r1")]
    assert decide(observed(*done_with_it, rollout=replace(NEW, partition=1))) == Idle()


def test_an_update_takes_the_shoot_and_then_the_managed_seed() -> None:
    pending = "test-0 ShootReconciling"
    running = on("test-0", "r2", "r1", operation="Reconcile Processing")
    assert done(decide(observed(running, pending=pending, rollout=NEW)))[:3] == (
        Action.WAIT,
        "test-0",
        Reason.SHOOT_RECONCILING,
    )
    failed = on("test-0", "r2", "r1", operation="Reconcile Failed")
    assert done(decide(observed(failed, pending=pending, rollout=NEW)))[0] is Action.RETRY_SHOOT
    unhealthy = on("test-0", "r2", "r1", health="unhealthy")
    assert done(decide(observed(unhealthy, pending=pending, rollout=NEW)))[2] is Reason.SHOOT_NOT_HEALTHY
    updated = step(decide(observed(on("test-0", "r2", "r1"), pending=pending, rollout=NEW)))
    assert (updated.action, updated.reason) == (Action.UPDATE_MANAGED_SEED, Reason.MANAGED_SEED_PREPARING)
    assert (updated.event, updated.message) == ("UpdatingManagedSeed", "Updating ManagedSeed garden/test-0")
    # Also if it is not waited for, as after the loss of the status.
    assert done(decide(observed(on("test-0", "r2", "r1"), rollout=NEW)))[0] is Action.UPDATE_MANAGED_SEED
    assert decide(observed(on("test-0", "r2"), pending="test-0 ManagedSeedPreparing", rollout=NEW)) == Idle()


def test_no_update_while_another_replica_is_not_ready() -> None:
    unready = Replica(shoot=replica_shoot("test-0"), managed_seed=managed_seed("test-0"))
    assert done(decide(observed(unready, on("test-1", "r1"), rollout=NEW)))[:2] == (Action.WAIT, "test-0")


def test_a_replica_that_is_to_go_half_updated_is_removed_only_if_it_may_be() -> None:
    half = on("test-0", "r2", "r1")
    in_use = decide(observed(half, target=0, pending="test-0 ShootReconciling", rollout=NEW, used_seeds={"test-0"}))
    assert isinstance(in_use, NoneDeletable)


BROKEN = {"operation": "Reconcile Failed", "health": "unhealthy"}


@pytest.mark.parametrize(
    ("replica", "rollout"),
    [
        (on("test-0", "r2", **BROKEN), Rollout(current="r1", update="r3")),
        (on("test-0", "r2", "r1", **BROKEN), Rollout(current="r1", update="r3")),
        (on("test-0", "r2", **BROKEN), Rollout(current="r1", update="r1")),
        (on("test-0", "r2", health="unhealthy"), Rollout(current="r1", update="r1")),
        (on("test-0", "r1", **BROKEN), NEW),
        (Replica(shoot=replica_shoot("test-0", "Create Failed", revision="r1")), NEW),
    ],
)
def test_a_mistake_in_the_templates_is_repaired_by_correcting_them(replica: Replica, rollout: Rollout) -> None:
    corrected = decide(observed(replica, pending="test-0 ShootReconcileFailed 3", rollout=rollout))
    assert done(corrected)[:2] == (Action.UPDATE_SHOOT, "test-0")
    kept = decide(observed(replica, pending="test-0 ShootReconcileFailed 3", rollout=replace(rollout, partition=1)))
    assert done(kept)[0] is not Action.UPDATE_SHOOT


def test_one_that_is_only_not_healthy_waits_for_its_turn() -> None:
    replicas = [on("test-0", "r1", health="progressing"), on("test-1", "r1")]
    assert done(decide(observed(*replicas, rollout=NEW)))[:2] == (Action.WAIT, "test-0")


def test_new_replicas_above_the_partition_have_the_new_templates() -> None:
    assert [replace(NEW, partition=2).of_new(ordinal) for ordinal in (1, 2, 3)] == ["r1", "r2", "r2"]


# --- since when


def test_since_moves_only_with_what_it_waits_for() -> None:
    earlier, later = NOW, NOW + timedelta(hours=1)
    before = Pending(name="test-0", reason=Reason.SHOOT_RECONCILING, since=earlier)
    assert Pending(name="test-0", reason=Reason.SHOOT_RECONCILING, since=later).following(before).since == earlier
    for changed in (
        Pending(name="test-1", reason=Reason.SHOOT_RECONCILING, since=later),
        Pending(name="test-0", reason=Reason.SEED_NOT_READY, since=later),
        Pending(name="test-0", reason=Reason.SHOOT_RECONCILING, since=later, retries=1),
    ):
        assert changed.following(before).since == later
    assert Pending.of({"pendingReplica": before.as_json()}) == before
    assert Pending.of({}) is None
    odd = Pending.of({"pendingReplica": {"name": "test-0", "reason": "Odd", "since": "?", "retries": "?"}})
    assert odd is not None
    assert odd.since < NOW


@pytest.mark.parametrize(
    ("most", "total", "unhealthy", "waits"),
    [
        (None, 3, 3, False),
        (0, 3, 0, False),
        (0, 3, 1, True),
        (1, 3, 1, False),
        ("50%", 5, 2, False),
        ("50%", 5, 3, True),
        ("0%", 0, 0, False),
        ("much", 9, 1, True),
    ],
)
def test_the_next_replica_waits_for_the_shoots_on_those_that_were_updated(
    most: int | str | None, total: int, unhealthy: int, *, waits: bool
) -> None:
    replicas = (on("test-0", "r1"), on("test-1", "r1"), on("test-2", "r2"))
    there = {
        "test-0": Scheduled(total=9, unhealthy=9),  # these are not for this update to blame
        "test-2": Scheduled(total=total, unhealthy=unhealthy),
    }
    found = observed(*replicas, rollout=replace(NEW, max_unhealthy=most), scheduled=there)
    action, name, reason, _ = done(decide(found))
    expected = (Action.WAIT, "test-2", Reason.SHOOT_NOT_HEALTHY)
    assert (action, name, reason) == (expected if waits else (Action.UPDATE_SHOOT, "test-1", Reason.SHOOT_RECONCILING))
    if waits:
        waiting = step(decide(found))
        assert waiting.event == "WaitingForScheduledShootsHealthy"
        assert waiting.message == f"Waiting for {unhealthy} of {total} Shoots on Seed test-2 to be healthy"
        # Scaling goes on.
        assert done(decide(replace(found, target=4)))[0] is Action.CREATE_SHOOT
