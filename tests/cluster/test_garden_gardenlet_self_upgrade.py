"""A gardenlet reinstalls itself, as its Gardenlet states: all of that and nothing else, and never a release that does not start."""

import base64
import io
import json
import tarfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest
import yaml

from agent.gardenlet.managed_seeds.installation.own_chart import archive as own_archive
from agent.gardenlet.managed_seeds.self_upgrade import creation
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from kit.chart_archives import archive
from kit.chart_registry import FakeRegistry
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_upgrades import DEPLOYED, Upgraded
from kit.installed_gardenlets import GARDEN
from kube.errors import AlreadyExists, NotFound
from kube.objects import annotations, labels
from kube.paths import at
from kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SECRETS, Resource

pytestmark = pytest.mark.timeout(600)


LIMIT_RANGES = Resource("", "v1", "LimitRange", "limitranges", True)
LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: later, namespace: garden}
spec: {limits: [{type: Container, defaultRequest: {cpu: 1m}}]}
"""


def chart_with(template: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(own_archive())) as tar:
        files = {each.name: text.read().decode() for each in tar if (text := tar.extractfile(each)) is not None}
    return archive({**files, "gardenlet/templates/later.yaml": template})


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: there is one gardenlet in it."""
    with Cluster() as cluster:
        cluster.api.create(NAMESPACES.path(), {"metadata": {"name": GARDEN}})
        yield cluster


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
        config = yaml.safe_load(upgraded.configuration())
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


async def test_the_gardenlet_is_created_from_a_config_map_of_its_seed(upgraded: Upgraded) -> None:
    seed, path = upgraded.cluster.api, CONFIG_MAPS.path(namespace=GARDEN, name=creation.NAME)
    gardenlet = upgraded.gardenlet_object()
    gardenlet["spec"]["config"]["seedConfig"]["metadata"] = {"name": "another"}
    seed.create(CONFIG_MAPS.path(namespace=GARDEN), {"metadata": {"name": creation.NAME}, "data": {creation.KEY: "["}})
    try:
        async with upgraded.at_work():
            await soon(
                lambda: "no Gardenlet was created from gardenlet.yaml: line 2" in reported(upgraded), "the error"
            )
            # The garden refuses this one.
            seed.patch(path, {"data": {creation.KEY: json.dumps(gardenlet)}})
            await soon(
                lambda: "seedConfig.metadata" in reported(upgraded), "the refusal", state=lambda: reported(upgraded)
            )
            gardenlet["spec"]["config"]["seedConfig"]["metadata"] = {"name": upgraded.name}
            seed.patch(path, {"data": {creation.KEY: json.dumps(gardenlet)}})
            await soon(
                lambda: seed.raw("GET", path)[0] == 404,
                "the ConfigMap to be gone",
                seconds=40,
                state=lambda: reported(upgraded),
            )
            assert "name" not in (at(upgraded.gardenlet, "spec", "config", "seedConfig", "metadata") or {})
            # One that exists is left unchanged.
            gardenlet["metadata"]["labels"] = {"from": "the ConfigMap"}
            data = {creation.KEY: json.dumps(gardenlet)}
            seed.create(CONFIG_MAPS.path(namespace=GARDEN), {"metadata": {"name": creation.NAME}, "data": data})
            await soon(
                lambda: seed.raw("GET", path)[0] == 404,
                "the ConfigMap to be gone",
                seconds=40,
                state=lambda: reported(upgraded),
            )
            assert not labels(upgraded.gardenlet)
    finally:
        with suppress(NotFound):
            seed.delete(path)


def reported(upgraded: Upgraded) -> str:
    """Messages of the Events about the ConfigMap."""
    events = upgraded.cluster.api.get(EVENTS.path(namespace=GARDEN))["items"]
    return "\n".join(each["message"] for each in events if each["involvedObject"]["name"] == creation.NAME)


async def test_a_chart_that_can_not_be_had_costs_the_gardenlet_nothing(upgraded: Upgraded) -> None:
    upgraded.store_kubeconfig()
    upgraded.create(version="v9.9.9")
    async with upgraded.at_work():
        await upgraded.until_said("False", "ReconcileError", "failed pulling Helm chart from OCI repository")
        upgraded.renew()
        await upgraded.until_said("False", "ReconcileError", "failed pulling Helm chart from OCI repository")
        assert upgraded.find(SECRETS, "gardenlet-kubeconfig") is not None
        # Without a registry, the object has the chart itself; that of another release may have further kinds.
        raw = {"ociRepository": None, "rawChart": base64.b64encode(chart_with(LIMITS)).decode()}
        upgraded.change({"deployment": {"helm": raw, "image": {"repository": "r"}}})
        await upgraded.until_said(*DEPLOYED, "Gardenlet with chart from spec.deployment.helm.rawChart")
        assert upgraded.find(LIMIT_RANGES, "later") is not None
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
