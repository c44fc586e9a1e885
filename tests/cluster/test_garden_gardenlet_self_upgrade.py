"""A gardenlet installs itself anew, as its Gardenlet says: all of that and nothing else, and never a release that does not start."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
import yaml

from agent.gardenlet.charts.helm import Helm
from agent.gardenlet.charts.registry import Registry
from agent.gardenlet.gardenlet.controller import declare_with
from agent.gardenlet.gardenlets.own_chart import archive
from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.garden import GARDENLETS
from kit.chart_registry import FakeRegistry
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.gardenlet_controllers import gardenlet_at_work, gardenlet_config, gardenlet_context
from kit.world import connected
from kube.errors import AlreadyExists, NotFound
from kube.objects import Object, annotations, condition, metadata
from kube.paths import at
from kube.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS
from localprocesses.helm_program import find_or_build

pytestmark = pytest.mark.timeout(600)

GARDEN = "garden"
DEPLOYED = ("True", "Reconciled")


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: there is one gardenlet in it."""
    with Cluster() as cluster:
        cluster.api.create(NAMESPACES.path(), {"metadata": {"name": GARDEN}})
        yield cluster


class Upgraded:
    """Attributes: name: of the Gardenlet and its Seed."""

    def __init__(self, garden: Garden, cluster: Cluster, registry: FakeRegistry) -> None:
        self.garden, self.cluster, self.registry = garden, cluster, registry
        self.place = ShootPlace(garden, is_garden=True)
        self.name = self.place.seed()
        self.registry.tag("v1.0.0", archive())

    def create(self, *, version: str = "v1.0.0", config: Object | None = None, **deployment: Any) -> None:
        seed = self.garden.get(self._seeds, self.name)["spec"]
        whole = {
            "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
            "kind": "GardenletConfiguration",
            "seedConfig": {"spec": seed},
            **(config or {}),
        }
        chart = {"ociRepository": {"ref": str(self.registry.reference(version))}}
        spec = {"config": whole, "deployment": {"helm": chart, **deployment}}
        self.place.create(GARDENLETS, self.name, spec=spec)

    @property
    def _seeds(self) -> Any:
        from gardener.api.garden import SEEDS

        return SEEDS

    def change(self, spec: Object) -> None:
        self.place.patch(GARDENLETS, self.name, {"spec": spec})

    @property
    def gardenlet(self) -> Object:
        return self.place.get(GARDENLETS, self.name)

    def said(self) -> tuple[str, str, str]:
        found = condition(self.gardenlet, "GardenletReconciled") or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def until_said(self, status: str, reason: str, message: str = "") -> None:
        def is_said() -> bool:
            found = self.said()
            observed = at(self.gardenlet, "status", "observedGeneration")
            return found[:2] == (status, reason) and message in found[2] and observed == self._generation

        await soon(is_said, f"the condition to be {status}, {reason}", state=self.said)

    @property
    def _generation(self) -> int:
        return int(metadata(self.gardenlet)["generation"])

    def find(self, resource: Any, name: str = "gardenlet") -> Object | None:
        with suppress(NotFound):
            return self.cluster.api.get(resource.path(namespace=GARDEN, name=name))
        return None

    @property
    def deployment(self) -> Any:
        return self.find(DEPLOYMENTS) or {}

    def configuration(self) -> Any:
        volumes = at(self.deployment, "spec", "template", "spec", "volumes")
        (name,) = (each["configMap"]["name"] for each in volumes if each["name"] == "config")
        return yaml.safe_load((self.find(CONFIG_MAPS, name) or {})["data"]["config.yaml"])

    def store_kubeconfig(self) -> None:
        secret = {"metadata": {"name": "gardenlet-kubeconfig"}, "stringData": {"kubeconfig": "of the gardenlet"}}
        self.cluster.api.create(SECRETS.path(namespace=GARDEN), secret)

    def remove(self) -> None:
        for resource, name in ((DEPLOYMENTS, "gardenlet"), (SECRETS, "gardenlet-kubeconfig")):
            with suppress(NotFound):
                self.cluster.api.delete(resource.path(namespace=GARDEN, name=name))
        self.place.remove()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        agent = f"gardenlet-{self.name}"
        async with (
            connected(self.garden.gardenlet_kubeconfig(self.name), agent) as own,
            connected(self.cluster, agent) as seed,
        ):
            context = await gardenlet_context(garden=own, seed=seed, config=gardenlet_config(self.name))
            program = find_or_build()
            declare = partial(declare_with, helm=Helm(program=program), registry=Registry(program=program))
            async with gardenlet_at_work(context, declare):
                yield


@pytest.fixture
async def upgraded(garden: Garden, seed_cluster: Cluster) -> AsyncIterator[Upgraded]:
    registry = FakeRegistry()
    with suppress(AlreadyExists):
        garden.create(NAMESPACES, GARDEN)
    async with registry.serving():
        upgraded = Upgraded(garden, seed_cluster, registry)
        yield upgraded
        upgraded.remove()


async def test_what_is_deployed_follows_from_the_object_and_the_chart(upgraded: Upgraded) -> None:
    unknown = {"later": {"unknown": 12345678901234567, "text": "1e3"}}
    upgraded.create(config=unknown, image={"repository": "r", "tag": "v1"})
    async with upgraded.at_work():
        await upgraded.until_said(*DEPLOYED, "Gardenlet with chart from 127.0.0.1")
        config = upgraded.configuration()
        assert config["later"] == unknown["later"]
        assert config["seedConfig"]["metadata"]["name"] == upgraded.name
        assert upgraded.find(SECRETS, "gardenlet-kubeconfig-bootstrap") is not None
        first = upgraded.deployment["spec"]
        set_now = {"replicaCount": 3, "imageVectorOverwrite": "images: []", "env": [{"name": "A", "value": "b"}]}
        upgraded.change({"deployment": set_now})
        await upgraded.until_said(*DEPLOYED)
        assert upgraded.deployment["spec"]["replicas"] == 3
        assert upgraded.deployment["spec"] != first
        upgraded.change({"deployment": {"replicaCount": 2, "imageVectorOverwrite": None, "env": None}})
        await upgraded.until_said(*DEPLOYED)
        assert upgraded.deployment["spec"] == first
        # Where neither names an image, the present one stays.
        upgraded.change({"deployment": {"image": {"repository": None, "tag": None}}})
        await upgraded.until_said(*DEPLOYED)
        assert upgraded.deployment["spec"]["template"] == first["template"]


async def test_a_chart_that_can_not_be_had_costs_the_gardenlet_nothing(upgraded: Upgraded) -> None:
    upgraded.store_kubeconfig()
    upgraded.create(version="v9.9.9")
    async with upgraded.at_work():
        await upgraded.until_said("False", "ReconcileError", "failed pulling Helm chart from OCI repository")
        renewing = {"metadata": {"annotations": {"gardener.cloud/operation": "renew-kubeconfig"}}}
        upgraded.place.patch(GARDENLETS, upgraded.name, renewing)
        await upgraded.until_said("False", "ReconcileError", "failed pulling Helm chart from OCI repository")
        assert upgraded.find(SECRETS, "gardenlet-kubeconfig") is not None
        ref = str(upgraded.registry.reference("v1.0.0"))
        upgraded.change({"deployment": {"helm": {"ociRepository": {"ref": ref}}, "image": {"repository": "r"}}})
        await upgraded.until_said(*DEPLOYED)
        assert upgraded.find(SECRETS, "gardenlet-kubeconfig") is None
        assert upgraded.find(SECRETS, "gardenlet-kubeconfig-bootstrap") is not None
        await soon(lambda: not annotations(upgraded.gardenlet), "the operation to be over")


async def test_a_release_that_does_not_start_is_reported_with_its_words(upgraded: Upgraded) -> None:
    labels = {"app": "gardener", "role": "gardenlet"}
    container = {"name": "gardenlet", "image": "r"}
    check = {"name": "check-configuration", "image": "r"}
    pod = {
        "metadata": {"name": "new", "labels": labels},
        "spec": {"containers": [container], "initContainers": [check]},
    }
    ended = {"exitCode": 1, "message": "Error: later: unknown value", "startedAt": None, "finishedAt": None}
    status = {"name": "check-configuration", "image": "r", "imageID": "", "ready": False, "restartCount": 1}
    status |= {"state": {"terminated": ended}}
    pods = PODS.path(namespace=GARDEN)
    upgraded.cluster.api.create(pods, pod)
    upgraded.cluster.api.patch(f"{pods}/new/status", {"status": {"initContainerStatuses": [status]}})
    upgraded.create(image={"repository": "r", "tag": "v2"})
    async with upgraded.at_work():
        await upgraded.until_said(
            "False", "ReconcileError", "container check-configuration: Error: later: unknown value"
        )
    upgraded.cluster.api.delete(f"{pods}/new")
