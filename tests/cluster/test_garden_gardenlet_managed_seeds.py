"""Shoots become seeds: the gardenlet of each is deployed, kept up to date, let in again, and removed in order."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.controller_manager.certificate_signing_request import USAGES
from agent.controller_manager.certificate_signing_request import declare as approver
from config.gardenlet.controllers import Controllers, ManagedSeed
from devcluster.api import Api
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import MANAGED_SEEDS, SECRET_BINDINGS, SEEDS, SHOOTS
from gardener.keys import SEED_USER_PREFIX, SEEDS_GROUP
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.installed_gardenlets import GARDEN
from kit.managed_seeds import ManagedSeedPlay
from kit.signing.requests import CLIENT, csr_object, signing_request
from kit.world import connected
from kube.errors import Forbidden, KubeError
from kube.objects import Object, controller_of, key, labels, metadata
from kube.paths import at
from kube.resources import (
    CERTIFICATE_SIGNING_REQUESTS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from kube.runtime.connection import connection_of_kubeconfig

pytestmark = pytest.mark.timeout(600)

REGISTERED = ("True", "Reconciled")
EXPIRED = {"clientCertificateExpirationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of the Shoots: there is one namespace for a gardenlet in it, so they are simulated one after the other."""
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
        assert play.find(NAMESPACES, GARDEN) is None
        play.shoot_is("Succeeded")
        await play.until_said(*REGISTERED, f"Seed {play.name} has been registered")
        assert play.reported("ShootReconciled")[:2] == REGISTERED
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
    play.change({"config": {"gardenClientConnection": {"gardenClusterCACert": "no certificate"}}})
    await play.until_said("False", "ReconcileError", "gardenClusterCACert")
    play.garden.delete(SECRET_BINDINGS, play.name, namespace=GARDEN)
    play.kick()
    await play.until_said("False", "ReconcileError", "no credentials for backups: secretbindings.core.gardener.cloud")
    play.register()
    play.place.delete(MANAGED_SEEDS, play.name)
    await play.until_said("False", "Deleting", f'Waiting for seed "{play.name}" to be deleted')
    assert play.find(DEPLOYMENTS) is not None
    play.clean_up()
    await soon(lambda: play.managed_seed is None, "the ManagedSeed to go", state=play.reported)
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
        play.kick()
        await soon(play.token, "a new bootstrap token")
        await soon(lambda: play.find(SECRETS, "gardenlet-kubeconfig") is None, "the old kubeconfig to go")
        await soon(lambda: "bootstrapKubeconfig" in play.configuration(), "the gardenlet to ask again")


async def test_a_gardenlet_that_went_before_its_seed_is_missed_by_name(play: ManagedSeedPlay) -> None:
    play.create()
    async with play.parent_at_work():
        await play.until_said(*REGISTERED)
        play.register()
        play.cluster.api.delete(DEPLOYMENTS.path(namespace=GARDEN, name="gardenlet"))
        await soon(lambda: play.find(DEPLOYMENTS) is None, "the gardenlet to go")
        play.place.delete(MANAGED_SEEDS, play.name)
        gone = "its gardenlet, which must clean up first, no longer exists in its cluster"
        await soon(lambda: at(play.place.find(SEEDS, play.name) or {}, "metadata", "deletionTimestamp"), "the deletion")
        play.place.patch(SEEDS, play.name, {"metadata": {"labels": {"a": "b"}}})
        play.kick()
        await play.until_said("False", "Deleting", gone)
        play.clean_up()
        await soon(lambda: play.managed_seed is None, "the ManagedSeed to go", state=play.reported)


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


async def test_the_host_of_a_seed_neither_sleeps_nor_goes_and_the_seed_stays_while_it_is_used(
    play: ManagedSeedPlay,
) -> None:
    play.create()
    with pytest.raises(Forbidden, match=f"can't be hibernated, since it is seed {play.name}; delete"):
        play.place.patch(SHOOTS, play.name, {"spec": {"hibernation": {"enabled": True}}})
    with pytest.raises(Forbidden, match=f"shoot garden/{play.name} since it is still referenced by a managed seed"):
        play.place.delete(SHOOTS, play.name)
    play.register()
    play.place.shoot("user-of-" + play.name, seedName=play.name)
    for resource, what in ((SEEDS, "seed"), (MANAGED_SEEDS, "managed seed")):
        with pytest.raises(Forbidden, match=f"cannot delete {what} .*is still used by shoot"):
            play.place.delete(resource, play.name)
        assert "deletionTimestamp" not in play.place.meta(resource, play.name)


async def test_a_child_comes_in_by_a_token_of_an_account_or_by_a_kubeconfig_of_its_own(play: ManagedSeedPlay) -> None:
    play.create(bootstrap="ServiceAccount")
    async with play.parent_at_work():
        await play.until_said(*REGISTERED)
        (user,) = yaml.safe_load(play.kubeconfig())["users"]
        asks = {"group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create"}
        as_child = Api(url=play.garden.cluster.url, ca=play.garden.cluster.ca, token=user["user"]["token"])
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        answer = as_child.create(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {**review, "spec": {"resourceAttributes": asks}}
        )
        assert answer["status"]["allowed"]
        assert play.token() is None
        play.place.delete(MANAGED_SEEDS, play.name)
        await soon(lambda: play.managed_seed is None, "the ManagedSeed to go", state=play.reported)
        play.create(bootstrap="None")
        await play.until_said("False", "ReconcileError", "it does not inherit that of its parent")
        play.change({"config": {"gardenClientConnection": {"kubeconfig": "/mounted/kubeconfig"}}})
        await play.until_said(*REGISTERED)
        connection_of_child = yaml.safe_load(play.configuration())["gardenClientConnection"]
        assert connection_of_child["kubeconfig"] == "/mounted/kubeconfig"
        assert not {"bootstrapKubeconfig", "kubeconfigSecret"} & set(connection_of_child)
        assert play.of_gardenlet(SECRETS) == []


async def test_the_token_that_a_child_gets_leads_to_its_certificate(play: ManagedSeedPlay, tmp_path: Path) -> None:
    play.create()
    body = signing_request(f"{SEED_USER_PREFIX}{play.name}", organizations=[SEEDS_GROUP])
    request = csr_object(body, name=play.name, signer=CLIENT, usages=sorted(USAGES))
    del request["metadata"]["creationTimestamp"]
    kubeconfig = tmp_path / "kubeconfig"
    async with (
        play.parent_at_work(),
        connected(play.garden.cluster) as operator,
        run_garden_controller(approver, operator),
    ):
        await play.until_said(*REGISTERED)
        kubeconfig.write_bytes(play.kubeconfig())
        async with connected(kubeconfig) as child:

            async def requested() -> Object:
                return await child.create(CERTIFICATE_SIGNING_REQUESTS, request)

            await soon(requested, "the token to be known", passing=(KubeError,))

            async def certificate() -> object:
                return at(await child.get(CERTIFICATE_SIGNING_REQUESTS, play.name), "status", "certificate")

            assert await soon(certificate, "the certificate")


async def test_a_template_becomes_a_seed_without_a_gardenlet(play: ManagedSeedPlay) -> None:
    play.place.seed()
    play.create_with_template(labels={"a": "b", "c": "d"})
    async with play.parent_at_work():
        await play.until_said("False", "ReconcileError", f'seed "{play.name}" was not created from spec.seedTemplate')
        play.place.delete(SEEDS, play.name)
        await play.until_said(*REGISTERED, f"Seed {play.name} has been registered")
        made = play.place.get(SEEDS, play.name)
        assert (controller_of(made) or {})["uid"] == metadata(play.managed_seed or {})["uid"]
        assert labels(made).items() >= {"a": "b", "c": "d", "gardener.cloud/role": "seed"}.items()
        assert made["spec"]["ingress"]["domain"] == f"ingress.{play.name}.example.com"
        assert play.backup() is not None
        assert play.find(DEPLOYMENTS) is None
        play.place.patch(SEEDS, play.name, {"metadata": {"labels": {"of": "another"}}})
        play.place.patch(MANAGED_SEEDS, play.name, {"spec": {"seedTemplate": {"metadata": {"labels": {"c": None}}}}})
        await soon(lambda: "c" not in labels(play.place.get(SEEDS, play.name)), "the label to go")
        assert labels(play.place.get(SEEDS, play.name)).items() >= {"a": "b", "of": "another"}.items()
        play.place.delete(MANAGED_SEEDS, play.name)
        await soon(lambda: play.managed_seed is None, "the ManagedSeed to go", state=play.reported)
        assert play.place.find(SEEDS, play.name) is None
        assert play.backup() is None
        assert play.find(NAMESPACES, GARDEN) is None


async def test_a_change_of_the_parent_restarts_its_children_one_after_the_other(
    garden: Garden, play: ManagedSeedPlay
) -> None:
    """No pods run here, so that one without any is the first to be rolled out."""
    with Cluster() as second:
        other = ManagedSeedPlay(garden, second, beside=play)
        both = (play, other)
        try:
            for each in both:
                each.create()
            settings = ManagedSeed(wait_sync_period=0.5, sync_jitter_period=0.0, max_concurrent_rollouts=1)
            controllers = Controllers(managed_seed=settings)
            async with play.parent_at_work(controllers=controllers):
                for each in both:
                    await each.until_said(*REGISTERED)
            async with play.parent_at_work(controllers=controllers, log_level="debug"):
                waiting = await soon(
                    lambda: next((each for each in both if each.reported()[1] == "RolloutPending"), None), "one to wait"
                )
                (first,) = (each for each in both if each is not waiting)
                await soon(lambda: "logLevel: debug" in first.configuration(), "the other to be changed")
                assert waiting.reported()[2].endswith("; 1 changed gardenlets wait until others are rolled out")
                assert "logLevel: debug" not in waiting.configuration()
                first.change({"deployment": {"replicaCount": 0}})
                await soon(lambda: "logLevel: debug" in waiting.configuration(), "the one that waited to be changed")
                await waiting.until_said(*REGISTERED)
        finally:
            other.remove()


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
