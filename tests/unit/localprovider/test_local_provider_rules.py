"""What the local provider does with an extension object, and what it keeps on this computer."""

from pathlib import Path
from typing import Any

import pytest

from kube.objects import Key
from localprovider.extensions.actuators import etcd_backup, record_key
from localprovider.extensions.simulation import Simulation, simulation_of
from localprovider.extensions.state import BucketAway, NoNetworkLeft, State


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
