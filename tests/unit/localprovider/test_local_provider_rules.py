"""What the local provider does with an extension object, and what it keeps on this computer."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kube.objects import Key, Object
from localprovider.extensions.actuators import etcd_backup, record_key
from localprovider.extensions.reconcile import answer_time, is_to_be_left_alone, operation_on
from localprovider.extensions.simulation import Simulation, simulation_of
from localprovider.extensions.state import BucketAway, NoNetworkLeft, State

FAILED = {"observedGeneration": 2, "lastOperation": {"state": "Failed"}}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def extension(
    requested: str = "", *, last: tuple[str, str] | None = None, deleting: bool = False, timestamp: str = ""
) -> Object:
    annotations = {"gardener.cloud/operation": requested, "gardener.cloud/timestamp": timestamp}
    meta: dict[str, Any] = {"annotations": {name: value for name, value in annotations.items() if value}}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"lastOperation": {"type": last[0], "state": last[1]}} if last else {}
    return {"metadata": meta, "status": status}


@pytest.mark.parametrize(
    ("obj", "operation"),
    [
        (extension(), "Create"),
        (extension("reconcile"), "Create"),
        (extension("reconcile", last=("Create", "Succeeded")), "Reconcile"),
        (extension(last=("Create", "Succeeded")), ""),
        (extension(last=("Create", "Error")), "Create"),
        (extension(last=("Reconcile", "Processing")), "Reconcile"),
        (extension("wait-for-state"), ""),
        (extension("restore"), "Restore"),
        (extension(last=("Restore", "Processing")), "Restore"),
        (extension("migrate", last=("Reconcile", "Succeeded")), "Migrate"),
        (extension(last=("Migrate", "Processing")), "Migrate"),
        (extension(last=("Migrate", "Succeeded")), ""),
        (extension("reconcile", last=("Migrate", "Error")), "Reconcile"),
        (extension("reconcile", last=("Restore", "Error")), "Restore"),
        (extension(last=("Reconcile", "Succeeded"), deleting=True), "Delete"),
        (extension("reconcile", last=("Restore", "Error"), deleting=True), "Delete"),
        (extension("migrate", deleting=True), "Migrate"),
        (extension(last=("Migrate", "Processing"), deleting=True), "Migrate"),
    ],
)
def test_what_is_requested_or_was_begun_is_done(obj: Object, operation: str) -> None:
    assert operation_on(obj) == operation


def test_an_answer_is_never_older_than_its_question() -> None:
    requested = "2026-01-01T01:00:00.5Z"
    late = extension(timestamp=requested)
    assert answer_time(late, NOW) == datetime(2026, 1, 1, 1, 0, 0, 500000, tzinfo=UTC)
    assert answer_time(extension(), NOW) == NOW


@pytest.mark.parametrize(
    ("shoot", "is_left"),
    [
        ({}, False),
        ({"metadata": {"generation": 2}, "status": FAILED}, True),
        ({"metadata": {"generation": 3}, "status": FAILED}, False),
        ({"metadata": {"annotations": {"shoot.gardener.cloud/ignore": "true"}}}, True),
    ],
)
def test_shoots_that_have_failed_or_are_ignored_are_left_alone(shoot: Object, is_left: bool) -> None:
    assert is_to_be_left_alone({"spec": {"shoot": shoot}}) is is_left


def test_faults_are_requested_by_the_object() -> None:
    def requested(**simulate: Any) -> Simulation:
        return simulation_of({"spec": {"providerConfig": {"simulate": simulate}}})

    assert simulation_of({}) == Simulation()
    assert requested(delay="2s", stuck=True) == Simulation(delay=2.0, is_stuck=True)
    twice = requested(errorCode="ERR_X", times=2)
    assert (twice.error, twice.code) == ("simulated ERR_X", "ERR_X")
    assert [twice.fails(failures) for failures in range(3)] == [True, True, False]
    assert requested(errorText="e").fails(1000)
    with pytest.raises(ValueError, match="time: invalid duration"):
        requested(delay="soon")


def test_each_owner_has_one_network_until_it_is_freed(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert [state.take_network(owner) for owner in ("a", "b", "a")] == [64, 65, 64]
    assert State(tmp_path).take_network("b") == 65, "it is known after a restart"
    state.free_network("a")
    assert state.take_network("c") == 64
    assert state.take_network("d", wanted=100) == 100
    for number in range(200):
        try:
            state.take_network(f"n{number}")
        except NoNetworkLeft as error:
            assert str(tmp_path) in str(error)
            break
    else:
        pytest.fail("there is no end of networks")


def test_buckets_are_directories_of_the_owner_alone(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.bucket("b", is_new=True)
    entry = state.entry("b", "e", is_new=True)
    assert entry.is_dir()
    assert entry.stat().st_mode & 0o077 == 0
    state.remove_entry("b", "e")
    assert not entry.exists()
    state.remove_bucket("b")
    assert not (tmp_path / "buckets" / "b").exists()


def test_what_was_in_a_bucket_is_never_recreated(tmp_path: Path) -> None:
    state = State(tmp_path)
    with pytest.raises(BucketAway, match="restore it"):
        state.bucket("b", is_new=False)
    with pytest.raises(BucketAway):
        state.entry("b", "e", is_new=True)
    state.bucket("b", is_new=True)
    with pytest.raises(BucketAway, match="b/e is missing"):
        state.entry("b", "e", is_new=False)


def test_names_of_backups_and_records() -> None:
    assert etcd_backup("shoot--p--s--uid") == Key("shoot--p--s", "etcd-backup")
    assert etcd_backup("source-shoot--p--s--uid") == Key("shoot--p--s", "source-etcd-backup")
    assert record_key("*.ingress.example.com") == "_wildcard.ingress.example.com"
