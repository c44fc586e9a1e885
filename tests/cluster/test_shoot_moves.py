"""A Shoot with workers moves between two Seeds, with real programs on both sides: its data, its keys and its state come
along, and its Nodes and their pods stay.

A garden, two seeds, each with its gardenlet and its local provider, as `devcluster up` starts them; their providers
share a directory for buckets. One Shoot goes through all of it, in the order of the tests.
"""

import base64
import os
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from devcluster.__main__ import main
from devcluster.audit import Call
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.extensions import CLUSTERS, NETWORKS, WORKERS
from gardener.api.garden import BACKUP_ENTRIES, SHOOT_STATES, SHOOTS
from gardener.api.kinds import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from gardener.garden.shoot_states import names_of_parts
from gardener.keys import OPERATION, TIMESTAMP
from kit.eventually import eventually
from kit.meadow import NAME, NAMESPACE, PATH, SECONDS, SEED, TECHNICAL_ID, WITH_POOL, Meadow
from kube.clock import format_time, utc_now
from kube.errors import AlreadyExists
from kube.objects import Object, annotations, finalizers, key, metadata, spec
from kube.paths import at
from kube.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("shoot-moves")]

OTHER = "pasture"
MANY = 100
WRITES = ("create", "update", "patch", "delete", "deletecollection")
PART = 700_000
"""Bytes of the state of one extension object; a database takes objects of little more."""
LARGE, TOO_MANY = 3, 30
"""Such objects, together 2 MB and 20 MB."""


class Move(Meadow):
    """Between two meadows. Attributes: data: of the keys that it has, by name."""

    def __init__(self, garden: Cluster, seeds: dict[str, Cluster]) -> None:
        super().__init__(garden, seeds[SEED])
        self.seeds, self.data = seeds, dict[str, Object]()
        made = {**WITH_POOL, "spec": {**spec(WITH_POOL), "seedName": SEED}}
        self.garden.api.create(SHOOTS.path(namespace=NAMESPACE), made)

    def to(self, name: str) -> Object:
        """The Shoot, once it is on the Seed."""
        self.change({"spec": {"seedName": name}})
        return self.arrives(name)

    def arrives(self, name: str) -> Object:
        self.seed = self.seeds[name]
        return self.restored(name)

    def restored(self, name: str) -> Object:
        """The Shoot after its restoration on the Seed, which a reconciliation may follow at once."""
        return self.wait("Restore", "Reconcile", on=name)

    def keys(self) -> dict[str, Object]:
        """What moves along, with its data."""
        path = f"{SECRETS.path(namespace=TECHNICAL_ID)}?labelSelector=persist%3Dtrue"
        return {metadata(each)["name"]: each["data"] for each in self.seed.api.get(path)["items"]}

    def running(self) -> dict[str, str]:
        """Uids of Nodes and of pods of CoreDNS, by name."""
        cluster = self.cluster()
        pods = f"{PODS.path(namespace='kube-system')}?labelSelector=k8s-app%3Dkube-dns"
        found = [each for path in (NODES.path(), pods) for each in cluster.get(path)["items"]]
        return {metadata(each)["name"]: metadata(each)["uid"] for each in found}

    def left(self, name: str) -> list[object]:
        """What a Seed still has of it."""
        api = self.seeds[name].api
        paths = (NAMESPACES.path(name=TECHNICAL_ID), CLUSTERS.path(name=TECHNICAL_ID))
        return [path for path in paths if api.raw("GET", path)[0] != 404]


@pytest.fixture(scope="module")
def move(devcluster_run: RunClusters) -> Iterator[Move]:
    name = f"moves-{os.getpid()}"
    with Cluster(name=name) as garden:
        seeds = {}
        for each in (SEED, OTHER):
            assert main(["up", "--garden", "--seed", each, "--shoots", "--name", name]) == 0
            cluster = Cluster.running(f"{name}.{each}")
            assert cluster is not None
            seeds[each] = cluster
        yield Move(garden, seeds)


def test_it_comes_up_and_is_used(move: Move) -> None:
    move.wait("Create")
    cluster = move.cluster()
    for number in range(MANY):
        obj = {**CONFIG_MAPS.type_meta, "metadata": {"name": f"c-{number}"}, "data": {"number": str(number)}}
        cluster.create(CONFIG_MAPS.path(namespace="default"), obj)
    secret = {**SECRETS.type_meta, "metadata": {"name": "secret"}, "stringData": {"a": "b"}}
    cluster.create(SECRETS.path(namespace="default"), secret)
    move.data.update(move.keys())
    assert "ca" in move.data


def has_machines(move: Move) -> None:
    """Objects as a provider with real machines makes them; the local one simulates Nodes."""
    name, labels_ = "md", {"name": "md"}
    template = {"metadata": {"labels": labels_}, "spec": {"class": {"kind": "MachineClass", "name": "c"}}}
    selected = {"replicas": 1, "selector": {"matchLabels": labels_}, "template": template}
    owner = {**MACHINE_DEPLOYMENTS.type_meta, "name": name, "uid": "1"}
    held: Object = {"labels": labels_, "finalizers": ["machine.sapcloud.io/machine-controller"]}
    for resource, meta, wanted in (
        (MACHINE_DEPLOYMENTS, held, selected),
        (MACHINE_SETS, {**held, "ownerReferences": [owner]}, selected),
        (MACHINES, held, {"class": template["spec"]["class"], "providerID": "local:///m"}),
    ):
        obj = {**resource.type_meta, "metadata": {"name": name, **meta}, "spec": wanted}
        move.seed.api.create(resource.path(namespace=TECHNICAL_ID), obj)


def check_machines(move: Move) -> None:
    """They were saved before anything was deleted, and the controller has started after they were there again."""
    for resource in (MACHINE_SETS, MACHINES):
        (found,) = move.seed.api.get(resource.path(namespace=TECHNICAL_ID))["items"]
        assert (key(found).name, finalizers(found)) == ("md", [])
    worker = move.seed.api.get(WORKERS.path(namespace=TECHNICAL_ID, name=NAME))
    assert "state" not in worker["status"]
    assert move.replicas()["machine-controller-manager"] == 1


def check_data(move: Move) -> None:
    cluster = move.cluster()
    found = cluster.get(CONFIG_MAPS.path(namespace="default"))["items"]
    numbers = {metadata(each)["name"]: each["data"] for each in found if metadata(each)["name"].startswith("c-")}
    assert numbers == {f"c-{number}": {"number": str(number)} for number in range(MANY)}
    secret = cluster.get(SECRETS.path(namespace="default", name="secret"))
    assert base64.b64decode(secret["data"]["a"]) == b"b"
    assert move.keys() == move.data, "clients that knew the cluster know it still"


def has_large_states(move: Move, count: int, *, of: str) -> None:
    """Args: of: the type of their extension."""
    api, large = move.seed.api, NETWORKS.path(namespace=TECHNICAL_ID)
    for number in range(count):
        obj = {
            **NETWORKS.type_meta,
            "metadata": {"name": f"large-{number}"},
            "spec": {"type": of, "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"},
        }
        api.create(large, obj)
        api.patch(f"{large}/large-{number}/status", {"status": {"state": {"a": "x" * PART}}})


def test_a_state_that_is_too_large_is_refused_before_anything_is_changed(move: Move) -> None:
    has_large_states(move, TOO_MANY, of="others")
    with closing(move.seed.audit()) as audit:
        since = audit.mark()
        move.change({"spec": {"seedName": OTHER}})

        def refused() -> str:
            reported = str(at(move.shoot(), "status", "lastOperation", "description"))
            return reported if "the state of the Shoot is not saved" in reported else ""

        reported = eventually(refused, "the move to be refused", seconds=SECONDS, state=move.explain)
        writes = audit.count(since=since, user_agent="gardenlet/", namespace=TECHNICAL_ID, verbs=WRITES)
    assert f"it has {TOO_MANY * PART // 1_000_000}" in reported
    assert f"bytes ({TOO_MANY}), secret " in reported
    after = move.shoot()["status"]
    assert (after["seedName"], after["lastOperation"]["type"] != "Migrate") == (SEED, True)
    assert writes == {}
    move.change({"spec": {"seedName": SEED}})
    for number in range(TOO_MANY):
        move.seed.api.delete(NETWORKS.path(namespace=TECHNICAL_ID, name=f"large-{number}"))
    check_data(move)


def was_saved_when_it_was_larger(move: Move) -> None:
    """As it is saved now and then, maybe while objects go."""
    for number, name in enumerate(names_of_parts(NAME)):
        entry = {"kind": NETWORKS.kind, "name": f"gone-{number}", "state": {"a": "x" * PART}}
        meta = {"name": name, "annotations": {TIMESTAMP: format_time(utc_now())}}
        obj = {**SHOOT_STATES.type_meta, "metadata": meta, "spec": {"extensions": [entry]}}
        with suppress(AlreadyExists):
            move.garden.api.create(SHOOT_STATES.path(namespace=NAMESPACE), obj)


def by(calls: list[Call]) -> list[str]:
    """The Seeds whose gardenlets have written, each run of calls as one."""
    found = list[str]()
    for call in calls:
        name = call.user.rpartition(":")[2]
        if call.status < 300 and name in {SEED, OTHER} and found[-1:] != [name]:
            found.append(name)
    return found


def test_it_moves_and_only_one_gardenlet_writes_at_a_time(move: Move) -> None:
    """With a state of 2 MB, which is in more than one object, in place of one that would not leave room for it."""
    was_saved_when_it_was_larger(move)
    has_large_states(move, LARGE, of="local")
    has_machines(move)
    running = move.running()
    assert len(running) == 4
    with closing(move.garden.audit()) as audit:
        since = audit.mark()
        shoot = move.to(OTHER)
        calls = audit.calls(since=since, user_agent="gardenlet/", namespace=NAMESPACE, verbs=WRITES)
    assert shoot["status"]["seedName"] == OTHER
    of_shoot = [each for each in calls if each.name == NAME and each.resource in {"shoots", "shoots/status"}]
    assert by(of_shoot) == [SEED, OTHER]
    entry = [
        each for each in calls if each.resource.startswith("backupentries") and not each.name.startswith("source-")
    ]
    assert by(entry) == [SEED, OTHER]
    assert move.left(SEED) == []
    check_data(move)
    check_machines(move)
    assert move.running() == running
    entries = move.garden.api.get(BACKUP_ENTRIES.path(namespace=NAMESPACE))["items"]
    assert [(spec(each)["seedName"], each["status"]["seedName"]) for each in entries] == [(OTHER, OTHER)]
    states = [spec(each) for each in move.garden.api.get(SHOOT_STATES.path(namespace=NAMESPACE))["items"]]
    saved = [each["name"] for state in states for field in ("gardener", "extensions") for each in state[field]]
    assert {*move.data, *(f"large-{number}" for number in range(LARGE))} <= set(saved)
    assert not any(each.startswith("gone-") for each in saved)
    assert len(states) > 1


def test_a_move_that_is_taken_back_changes_no_node_and_no_machine(move: Move) -> None:
    """The source waits for an extension that does not exist, when others have released the Shoot already."""
    has_large_states(move, 1, of="others")
    held, machine = NETWORKS.path(namespace=TECHNICAL_ID, name="large-0"), MACHINES.path(namespace=TECHNICAL_ID)
    running, machines = move.running(), move.seed.api.get(machine)["items"]
    move.change({"spec": {"seedName": SEED}})
    eventually(
        lambda: annotations(move.seed.api.get(held)).get(OPERATION) == "migrate",
        "the migration of extensions",
        seconds=SECONDS,
        state=move.explain,
    )
    move.change({"spec": {"seedName": OTHER}})
    move.restored(OTHER)
    check_data(move)
    assert move.running() == running
    assert move.seed.api.get(machine)["items"] == machines
    assert move.replicas()["machine-controller-manager"] == 1
    move.seed.api.delete(held)


def test_it_moves_back_asleep(move: Move) -> None:
    """It falls asleep where it is, although it is to move already."""
    move.change({"spec": {"hibernation": {"enabled": True}}})
    shoot = move.to(SEED)
    assert (shoot["status"]["hibernated"], set(move.replicas().values())) == (True, {0})
    assert move.left(OTHER) == []
    move.change({"spec": {"hibernation": {"enabled": False}}})
    assert move.wait("Reconcile")["status"]["hibernated"] is False
    check_data(move)


def test_what_is_restored_already_is_restored_again_without_its_state(move: Move) -> None:
    """As after a gardenlet that ended before it could report the first time: all is there."""
    api, states = move.garden.api, SHOOT_STATES.path(namespace=NAMESPACE)
    for each in api.get(states)["items"]:
        path = f"{states}/{metadata(each)['name']}"
        api.patch(path, {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
        api.delete(path)
    last = {**move.shoot()["status"]["lastOperation"], "type": "Migrate", "state": "Aborted"}
    api.patch(f"{PATH}/status", {"status": {"lastOperation": last}})
    move.change({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}})
    move.restored(SEED)
    check_data(move)


def test_it_goes_with_what_was_saved_of_it(move: Move) -> None:
    api = move.garden.api
    move.change({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
    api.delete(PATH)
    eventually(lambda: api.raw("GET", PATH)[0] == 404, "the Shoot to go", seconds=SECONDS, state=move.explain)
    assert move.left(SEED) == []
    assert api.get(SHOOT_STATES.path(namespace=NAMESPACE))["items"] == []
