"""Shoots become seeds: the gardenlet of each is deployed, kept up to date, let in again, and removed in order."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import yaml

from config.gardenlet.controllers import Controllers, ManagedSeed
from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.managed_seeds import GARDEN, ManagedSeedPlay
from kube.errors import Forbidden
from kube.objects import controller_of, key, metadata
from kube.paths import at
from kube.resources import CLUSTER_ROLES, CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from kube.runtime.connection import connection_of_kubeconfig

pytestmark = pytest.mark.timeout(600)

REGISTERED = ("True", "Reconciled")
EXPIRED = {"clientCertificateExpirationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of the Shoots: there is one namespace for a gardenlet in it, so they are played one after the other."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def play(garden: Garden, cluster: Cluster) -> Iterator[ManagedSeedPlay]:
    play = ManagedSeedPlay(garden, cluster)
    yield play
    play.remove()


def template(play: ManagedSeedPlay) -> Any:
    deployment = play.find(DEPLOYMENTS)
    assert deployment is not None
    return deployment["spec"]["template"]


async def test_a_shoot_becomes_a_seed_follows_its_object_and_ceases_to_be_one(play: ManagedSeedPlay) -> None:
    play.shoot_is("Processing")
    play.create(config={"controllers": {"shoot": {"concurrentSyncs": 5}}, "later": {"unknown": 12345678901234567}})
    async with play.parent_at_work() as (loop,):
        await play.until_said("False", "Reconciling", "to be reconciled", of_type="ShootReconciled")
        assert play.phase() == "Unknown"
        assert play.find(NAMESPACES, GARDEN) is None
        play.shoot_is("Succeeded")
        await play.until_said(*REGISTERED, f"Seed {play.name} has been registered")
        assert play.said("ShootReconciled")[:2] == REGISTERED
        assert play.phase() == "Registered"
        config = yaml.safe_load(play.configuration())
        assert config["seedConfig"]["metadata"]["name"] == play.name
        assert config["later"] == {"unknown": 12345678901234567}
        assert config["controllers"]["shoot"]["concurrentSyncs"] == 5
        assert config["controllers"]["managedSeed"]["waitSyncPeriod"] == "500ms"
        connection = connection_of_kubeconfig(play.kubeconfig(), origin="test")
        assert connection.server == play.garden.cluster.url
        backup = play.backup()
        assert backup is not None
        assert (controller_of(backup) or {})["name"] == play.name
        assert play.of_gardenlet(SERVICE_ACCOUNTS) == ["gardenlet"]
        await has_settled(play, loop)
        first = template(play)
        play.change({"deployment": {"env": [{"name": "A", "value": "b"}]}, "config": {"logLevel": "debug"}})
        await soon(lambda: template(play) != first, "the gardenlet to be changed")
        assert yaml.safe_load(play.configuration())["logLevel"] == "debug"
        play.change({"deployment": {"env": None}, "config": {"logLevel": None}})
        await soon(lambda: template(play) == first, "the gardenlet to be as it was, since the object is")
        await is_removed(play)


async def has_settled(play: ManagedSeedPlay, loop: Any) -> None:
    """Another pass writes nothing in the cluster of the Shoot."""
    await soon(lambda: loop.queue.is_idle, "the controller to have nothing to do")
    with closing(play.cluster.audit()) as audit:
        since, agent = audit.mark(), f"gardenlet/{play.parent}"
        loop.queue.add(key(play.managed_seed or {}))
        await soon(lambda: loop.queue.is_idle, "the next pass")
        assert audit.calls(since=since, user_agent=agent, verbs=("get",))
        assert not audit.calls(since=since, user_agent=agent, verbs=("create", "update", "patch", "delete"))


async def is_removed(play: ManagedSeedPlay) -> None:
    """First the Seed, which its gardenlet has to clean up, then the rest, without anything that deploying needs."""
    play.register()
    # Nothing of this is needed any more.
    play.place.patch(SHOOTS, play.name, {"metadata": {"labels": {"a": "b"}}})
    play.place.delete(MANAGED_SEEDS, play.name)
    await play.until_said("False", "Deleting", f'Waiting for seed "{play.name}" to be deleted')
    assert play.find(DEPLOYMENTS) is not None
    play.clean_up()
    await soon(lambda: play.managed_seed is None, "the ManagedSeed to go", state=play.said)
    assert play.find(NAMESPACES, GARDEN) is None
    assert play.backup() is None
    assert play.of_gardenlet(CLUSTER_ROLES) == []


async def test_a_gardenlet_that_is_locked_out_gets_in_again_and_one_that_is_in_is_left_alone(
    play: ManagedSeedPlay,
) -> None:
    play.create()
    async with play.parent_at_work():
        await play.until_said(*REGISTERED)
        token = play.token()
        stored = {"metadata": {"name": "gardenlet-kubeconfig"}, "stringData": {"kubeconfig": "of the gardenlet"}}
        play.cluster.api.create(SECRETS.path(namespace=GARDEN), stored)
        play.garden.delete(SECRETS, metadata(token or {})["name"], namespace="kube-system")
        play.register()
        play.change({"config": {"logLevel": "debug"}})
        await soon(lambda: "logLevel: debug" in play.configuration(), "the gardenlet to be changed")
        assert play.token() is None
        assert play.find(SECRETS, "gardenlet-kubeconfig") is not None
        assert "bootstrapKubeconfig" not in play.configuration()
        play.place.patch(SEEDS, play.name, {"status": EXPIRED}, status=True)
        play.place.patch(
            MANAGED_SEEDS, play.name, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
        )
        await soon(play.token, "a new bootstrap token")
        await soon(lambda: play.find(SECRETS, "gardenlet-kubeconfig") is None, "the old kubeconfig to go")
        await soon(lambda: "bootstrapKubeconfig" in play.configuration(), "the gardenlet to ask anew")


async def test_a_gardenlet_that_went_before_its_seed_is_missed_by_name(play: ManagedSeedPlay) -> None:
    play.create()
    async with play.parent_at_work():
        await play.until_said(*REGISTERED)
        play.register()
        play.cluster.api.delete(DEPLOYMENTS.path(namespace=GARDEN, name="gardenlet"))
        await soon(lambda: play.find(DEPLOYMENTS) is None, "the gardenlet to go")
        play.place.delete(MANAGED_SEEDS, play.name)
        gone = "its gardenlet, which has to clean up first, is gone from its cluster"
        await soon(lambda: at(play.place.find(SEEDS, play.name) or {}, "metadata", "deletionTimestamp"), "the deletion")
        play.place.patch(SEEDS, play.name, {"metadata": {"labels": {"a": "b"}}})
        play.place.patch(
            MANAGED_SEEDS, play.name, {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
        )
        await play.until_said("False", "Deleting", gone)
        play.clean_up()
        await soon(lambda: play.managed_seed is None, "the ManagedSeed to go", state=play.said)


async def test_neither_another_gardenlet_nor_a_second_autoscaler_nor_a_foreign_secret_is_touched(
    play: ManagedSeedPlay,
) -> None:
    play.garden.create(SECRETS, f"backup-{play.name}", namespace=GARDEN, stringData={"mine": "x"})
    play.create()
    async with play.parent_at_work() as (loop,):
        await play.until_said(*REGISTERED)
        assert set((play.backup() or {})["data"]) == {"mine"}
        other = yaml.safe_dump({"seedConfig": {"metadata": {"name": "other"}}})
        meta = {"name": "other", "namespace": GARDEN}
        play.cluster.api.create(CONFIG_MAPS.path(namespace=GARDEN), {"metadata": meta, "data": {"config.yaml": other}})
        kept = [each for each in template(play)["spec"]["volumes"] if each["name"] != "config"]
        named = [*kept, {"name": "config", "configMap": {"name": "other"}}]
        volumes = {"spec": {"template": {"spec": {"volumes": named}}}}
        play.cluster.api.patch(DEPLOYMENTS.path(namespace=GARDEN, name="gardenlet"), volumes)
        loop.queue.add(key(play.managed_seed or {}))
        await play.until_said("False", "ReconcileError", 'the gardenlet of seed "other"')
        play.garden.delete(SECRETS, f"backup-{play.name}", namespace=GARDEN)


async def test_the_host_of_a_seed_is_not_hibernated_by_its_owner(play: ManagedSeedPlay) -> None:
    play.create()
    with pytest.raises(Forbidden, match=f"can't be hibernated since it is the seed {play.name}; delete"):
        play.place.patch(SHOOTS, play.name, {"spec": {"hibernation": {"enabled": True}}})


async def test_what_the_parent_gets_reaches_its_children_after_its_restart(play: ManagedSeedPlay) -> None:
    """Though its ManagedSeeds are as they were."""
    play.create()
    async with play.parent_at_work():
        await play.until_said(*REGISTERED)
    play.change({"deployment": {"replicaCount": 1}})
    settings = ManagedSeed(wait_sync_period=0.5, sync_jitter_period=0.0)
    async with play.parent_at_work(controllers=Controllers(managed_seed=settings), log_level="debug"):
        await soon(lambda: "logLevel: debug" in play.configuration(), "the gardenlet to have what its parent has")
        assert len(play.of_gardenlet(CONFIG_MAPS)) > 1  # pods that run may still use the old one
