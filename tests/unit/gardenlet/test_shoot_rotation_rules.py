"""Phases of rotations in the status of a Shoot."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.gardenlet.shoot.main.rules import rotation
from agent.gardenlet.shoot.main.rules.encryption import LABELED, is_marked
from agent.gardenlet.shoot.main.tasks.secrets import rotation_times
from components.secrets import tables
from components.secrets.rotation import Old
from components.secrets.shoot_rotation import rotations
from components.worker_pools.pools import pools_of
from gardener.garden.rotations import (
    AUTHORITIES,
    ENCRYPTION_KEY,
    OBSERVABILITY,
    SERVICE_ACCOUNT_KEY,
    SSH,
    rotations_of_nodes,
)
from kube.objects import Object

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SAID = "2026-01-02T03:04:05Z"
EARLIER = "2026-01-01T00:00:00Z"


def shoot(
    operation: str = "", of_rotation: Mapping[str, Any] | None = None, *, workers: bool = False, names: str = "a"
) -> Object:
    pools = [{"name": each} for each in names] if workers else []
    return {
        "metadata": {"annotations": {"gardener.cloud/operation": operation} if operation else {}},
        "spec": {"provider": {"workers": pools}},
        "status": {"credentials": {"rotation": of_rotation}} if of_rotation else {},
    }


def begun(shoot: Object) -> Object:
    fields = rotation.begun(shoot, now=NOW)
    found: Object = fields["credentials"]["rotation"] if fields else {}
    return found


def ended(shoot: Object, status: Object | None = None) -> Object:
    fields = rotation.ended(shoot, shoot["status"] if status is None else status, now=NOW)
    found: Object = fields["credentials"]["rotation"] if fields else {}
    return found


PREPARING = {"phase": "Preparing", "lastInitiationTime": SAID}
PREPARED = {"phase": "Prepared", "lastInitiationTime": EARLIER, "lastInitiationFinishedTime": EARLIER}
COMPLETING = {**PREPARED, "phase": "Completing", "lastCompletionTriggeredTime": SAID}
COMPLETED = {"phase": "Completed", "lastInitiationTime": EARLIER, "lastCompletionTime": EARLIER}


@pytest.mark.parametrize(
    ("operation", "before", "after"),
    [
        ("rotate-ca-start", {}, {AUTHORITIES: PREPARING}),
        ("rotate-serviceaccount-key-start", {}, {SERVICE_ACCOUNT_KEY: PREPARING}),
        (
            "rotate-etcd-encryption-key-start",
            {ENCRYPTION_KEY: COMPLETED},
            {ENCRYPTION_KEY: {**PREPARING, "lastCompletionTime": EARLIER}},
        ),
        ("rotate-ca-complete", {AUTHORITIES: PREPARED}, {AUTHORITIES: COMPLETING}),
        (
            "rotate-credentials-start",
            {},
            {
                **dict.fromkeys((AUTHORITIES, SERVICE_ACCOUNT_KEY, ENCRYPTION_KEY), PREPARING),
                OBSERVABILITY: {"lastInitiationTime": SAID},
            },
        ),
        ("reconcile", {}, {}),
        ("", {}, {}),
    ],
)
def test_what_is_requested_begins(operation: str, before: Object, after: Object) -> None:
    assert begun(shoot(operation, before)) == after


@pytest.mark.parametrize(
    ("operation", "before"),
    [
        ("rotate-ca-start", {AUTHORITIES: PREPARING}),
        ("rotate-ca-start", {AUTHORITIES: PREPARED}),
        ("rotate-ca-start", {AUTHORITIES: {**PREPARED, "phase": "WaitingForWorkersRollout"}}),
        ("rotate-ca-complete", {AUTHORITIES: COMPLETING}),
        ("rotate-ca-complete", {AUTHORITIES: PREPARING}),
        ("rotate-ca-complete", {AUTHORITIES: {**PREPARED, "phase": "WaitingForWorkersRollout"}}),
        ("rotate-ca-complete", {}),
        ("rotate-observability-credentials", {OBSERVABILITY: {"lastInitiationTime": EARLIER}}),
    ],
)
def test_an_annotation_that_a_process_has_left_requests_nothing_again(operation: str, before: Object) -> None:
    assert begun(shoot(operation, before)) == {}


STAYS = {"pendingWorkersRollouts": [{"name": "a"}, {"name": "b"}]}
WAITING = {"phase": "WaitingForWorkersRollout", "lastInitiationTime": EARLIER}


def test_a_rotation_can_leave_nodes_as_they_are() -> None:
    operation = "rotate-credentials-start-without-workers-rollout"
    found = begun(shoot(operation, {AUTHORITIES: COMPLETED}, workers=True, names="ab"))
    since = [{"name": name, "lastInitiationTime": EARLIER} for name in "ab"]
    staying = {**PREPARING, "phase": "PreparingWithoutWorkersRollout"}
    assert found[AUTHORITIES] == {**staying, "lastCompletionTime": EARLIER, "pendingWorkersRollouts": since}
    assert found[SERVICE_ACCOUNT_KEY] == {**staying, **STAYS}
    assert found[ENCRYPTION_KEY] == PREPARING
    assert SSH in found
    assert begun(shoot(operation))[AUTHORITIES] == PREPARING  # there are no nodes


def test_nodes_are_rolled_out_pool_by_pool() -> None:
    staying = {"phase": "PreparingWithoutWorkersRollout", "lastInitiationTime": EARLIER, **STAYS}
    assert ended(shoot("", {AUTHORITIES: staying}, workers=True, names="ab")) == {AUTHORITIES: {**WAITING, **STAYS}}
    waiting = shoot("rotate-rollout-workers=b", {AUTHORITIES: {**WAITING, **STAYS}}, workers=True, names="ab")
    left = {AUTHORITIES: {**WAITING, "pendingWorkersRollouts": [{"name": "a"}]}}
    assert begun(waiting) == left
    assert ended(shoot("", left, workers=True, names="ab")) == {}
    last = begun(shoot("rotate-rollout-workers=b,a", left, workers=True, names="ab"))
    assert last == {AUTHORITIES: WAITING}
    prepared = {AUTHORITIES: {**WAITING, "phase": "Prepared", "lastInitiationFinishedTime": SAID}}
    assert ended(shoot("", last, workers=True, names="ab")) == prepared
    assert ended(shoot("", left, workers=True, names="b")) == prepared  # the pool is gone


def test_nodes_are_of_the_last_rotation_unless_they_are_to_stay() -> None:
    pending = [{"name": "a"}, {"name": "b", "lastInitiationTime": EARLIER}]
    found = shoot("", {AUTHORITIES: {**WAITING, "lastInitiationTime": SAID, "pendingWorkersRollouts": pending}})
    assert [rotations_of_nodes(found, pool) for pool in "abc"] == [(), (EARLIER,), (SAID,)]
    both = shoot("", {AUTHORITIES: PREPARED, SERVICE_ACCOUNT_KEY: PREPARING, ENCRYPTION_KEY: PREPARING})
    assert rotations_of_nodes(both, "a") == (EARLIER, SAID)
    assert rotations_of_nodes(shoot(), "a") == ()


def test_other_credentials_are_other_nodes() -> None:
    kind = {"machine": {"type": "t"}}
    profile = {"spec": {"machineTypes": [{"name": "t"}]}}

    def key_of(of_rotation: Object) -> str:
        found = shoot("", of_rotation)
        spec = {"kubernetes": {"version": "1.36.3"}, "provider": {"workers": [{"name": "a", **kind}]}}
        (pool,) = pools_of({**found, "spec": spec}, profile)
        return pool.key

    assert key_of({}) == key_of({ENCRYPTION_KEY: PREPARED}) == key_of({AUTHORITIES: {**PREPARING, **STAYS}})
    assert len({key_of(each) for each in ({}, {AUTHORITIES: PREPARING}, {AUTHORITIES: PREPARED})}) == 3


def test_nodes_alone_have_key_pairs() -> None:
    operation = "rotate-ssh-keypair"
    assert begun(shoot(operation)) == {}
    assert begun(shoot(operation, workers=True)) == {SSH: {"lastInitiationTime": SAID}}


def test_a_step_ends_with_an_operation_that_succeeds() -> None:
    preparing = {"phase": "Preparing", "lastInitiationTime": EARLIER}
    assert ended(shoot("", {AUTHORITIES: preparing, SERVICE_ACCOUNT_KEY: COMPLETING, ENCRYPTION_KEY: PREPARED})) == {
        AUTHORITIES: {**preparing, "phase": "Prepared", "lastInitiationFinishedTime": SAID},
        SERVICE_ACCOUNT_KEY: {"phase": "Completed", "lastInitiationTime": EARLIER, "lastCompletionTime": SAID},
        ENCRYPTION_KEY: PREPARED,
    }


def test_what_has_begun_since_does_not_end() -> None:
    before, now = shoot("", {AUTHORITIES: PREPARED}), shoot("", {AUTHORITIES: COMPLETING})["status"]
    assert ended(before, now) == {}
    before, now = shoot(), shoot("", {OBSERVABILITY: {"lastInitiationTime": SAID}})["status"]
    assert ended(before, now) == {}


def test_what_has_one_step_is_complete_once() -> None:
    initiated = {"lastInitiationTime": EARLIER}
    completed = ended(shoot("", {OBSERVABILITY: initiated}))
    assert completed == {OBSERVABILITY: {**initiated, "lastCompletionTime": SAID}}
    assert ended(shoot("", completed)) == {}
    assert begun(shoot("rotate-observability-credentials", completed)) == {
        OBSERVABILITY: {"lastInitiationTime": SAID, "lastCompletionTime": SAID}
    }


@pytest.mark.parametrize("operation", ["rotate-observability-credentials", "rotate-credentials-start"])
def test_a_rotation_that_is_requested_again_and_again_starts_once_until_an_operation_succeeds(operation: str) -> None:
    """What starts makes keys; those of before go when an operation succeeds."""
    first = begun(shoot(operation))
    assert first
    assert begun(shoot(operation, first)) == {}


def test_what_the_shoot_has_no_more_is_left_out() -> None:
    assert ended(shoot("", {SSH: COMPLETED, AUTHORITIES: COMPLETED})) == {AUTHORITIES: COMPLETED}
    assert ended(shoot(workers=True, of_rotation={SSH: COMPLETED})) == {}


def test_times_of_rotations_are_those_of_their_start() -> None:
    initiated = {"phase": "Prepared", "lastInitiationTime": SAID}
    times = rotation_times(shoot("", {AUTHORITIES: initiated}))
    assert times == dict.fromkeys(
        ("ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy", "kube-apiserver-static-token"), NOW
    )
    assert rotation_times(shoot("", {ENCRYPTION_KEY: initiated})) == {"kube-apiserver-etcd-encryption-key": NOW}
    assert "ca-kubelet" in rotation_times(shoot(workers=True, of_rotation={AUTHORITIES: initiated}))


@pytest.mark.parametrize("phase", ["PreparingWithoutWorkersRollout", "WaitingForWorkersRollout", "Preparing", "New"])
def test_what_is_old_is_in_use_until_the_rotation_is_completed(phase: str) -> None:
    found = rotations(shoot("", {AUTHORITIES: {"phase": phase}}), has_static_kubeconfig=False)
    assert found.old(tables.CA) is Old.IN_USE


def test_trust_shrinks_after_the_servers_were_seen_authority_by_authority() -> None:
    found = rotations(shoot("", {AUTHORITIES: COMPLETING}), has_static_kubeconfig=False)
    assert found.old(tables.CA) is Old.VERIFIES
    assert found.old(tables.CA, servers_by_current=["ca"]) is Old.IGNORED
    assert found.old(tables.CA_ETCD, servers_by_current=["ca"]) is Old.VERIFIES


@pytest.mark.parametrize(("value", "expected"), [("key-2", True), ("true", True), ("key-1", False), ("", False)])
def test_a_mark_of_another_key_means_nothing(value: str, expected: bool) -> None:
    assert is_marked({LABELED: value}, LABELED, "key-2") is expected
