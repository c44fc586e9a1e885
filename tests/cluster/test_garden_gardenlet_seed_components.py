"""Components of a seed that may be left out: deployed, left as they are, and removed."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from agent.gardenlet.seed.main import optional
from agent.gardenlet.seed.main.controller import declare
from config.gardenlet.schema import Images, LocalProfile
from devcluster.cluster import Cluster
from devcluster.pytest_plugin import RunClusters
from gardener.api.kinds import MANAGED_RESOURCES
from kit.eventually import eventually
from kit.garden import Garden
from kit.gardenlet_seeds import GARDEN, SeedPlace
from kit.world import WRITES
from kube.objects import annotations, labels, metadata
from kube.resources import DEPLOYMENTS, SECRETS

pytestmark = pytest.mark.timeout(900)

NAMES = {each.name for each in optional.COMPONENTS}
IMAGES = Images(
    etcd_druid="druid",
    kube_state_metrics="metrics",
    vpa_admission_controller="admission",
    vpa_recommender="recommender",
    vpa_updater="updater",
)
WITH_ALL = {"images": IMAGES, "local_profile": LocalProfile(deploy=tuple(NAMES))}
SERVER = "vpa-admission-controller-server"


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: a seed has things that there is one of."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def place(garden: Garden, seed_cluster: Cluster) -> Iterator[SeedPlace]:
    """With a resource manager."""
    place = SeedPlace(garden, seed_cluster)
    with place.resource_manager():
        yield place
        place.remove()


def deployed(place: SeedPlace) -> set[str]:
    """The components that there are, by their ManagedResources."""
    listed = place.cluster.api.get(MANAGED_RESOURCES.path(namespace=GARDEN))["items"]
    return {metadata(each)["name"] for each in listed} & NAMES


def images(place: SeedPlace) -> dict[str, str]:
    """Of the first container of each Deployment."""
    listed = place.cluster.api.get(DEPLOYMENTS.path(namespace=GARDEN))["items"]
    return {metadata(each)["name"]: each["spec"]["template"]["spec"]["containers"][0]["image"] for each in listed}


def servers(place: SeedPlace) -> list[str]:
    """Certificates of the webhook."""
    listed = place.cluster.api.get(SECRETS.path(namespace=GARDEN))["items"]
    return [metadata(each)["name"] for each in listed if labels(each).get("name") == SERVER]


async def test_components_are_deployed_kept_and_removed(place: SeedPlace) -> None:
    async with place.gardenlet(declare, **WITH_ALL):
        await asyncio.to_thread(place.finished)
        assert deployed(place) == NAMES
        expected = {
            "etcd-druid": "druid",
            "kube-state-metrics-seed": "metrics",
            "vpa-admission-controller": "admission",
            "vpa-recommender": "recommender",
            "vpa-updater": "updater",
        }
        await asyncio.to_thread(
            eventually,
            lambda: images(place) == expected,
            "the resource manager to apply all",
            state=lambda: images(place),
        )
        (server,) = servers(place)
        volumes = place.cluster.api.get(DEPLOYMENTS.path(namespace=GARDEN, name="vpa-admission-controller"))["spec"][
            "template"
        ]["spec"]["volumes"]
        assert server in str(volumes)
        with closing(place.cluster.audit()) as audit:
            await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
            assert not audit.calls(user_agent=f"gardenlet/seed-of-{place.name}", verbs=WRITES)

    # Another process, which is to leave them out.
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert (deployed(place), servers(place)) == (set(), [])
        await asyncio.to_thread(eventually, lambda: not images(place), "Deployments to go", state=lambda: images(place))


async def test_what_another_gardenlet_has_deployed_is_not_removed(place: SeedPlace) -> None:
    theirs = MANAGED_RESOURCES.path(namespace=GARDEN, name="etcd-druid")
    body = {
        **MANAGED_RESOURCES.type_meta,
        "metadata": {"name": "etcd-druid"},
        "spec": {"class": "seed", "secretRefs": []},
    }
    async with place.gardenlet(declare):
        await asyncio.to_thread(place.finished)
        place.cluster.api.create(MANAGED_RESOURCES.path(namespace=GARDEN), body)
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert "gardenlet.gardener.cloud/component" not in annotations(place.cluster.api.get(theirs))
    async with place.gardenlet(declare, **WITH_ALL):
        await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
        assert annotations(place.cluster.api.get(theirs))["gardenlet.gardener.cloud/component"]
