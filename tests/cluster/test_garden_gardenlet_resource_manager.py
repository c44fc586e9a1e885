"""The resource manager of a seed, deployed by the gardenlet, with pods that are real processes."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from agent.gardenlet.seed.main.controller import declare
from components import resource_manager
from config.gardenlet.schema import GARDENLET_AUTOSCALING, RESOURCE_MANAGER, Images
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener.api.garden import CONTROLLER_INSTALLATIONS, SEEDS
from gardener.api.kinds import MANAGED_RESOURCES
from kit.deployments import pod_of
from kit.eventually import eventually, soon
from kit.garden import Garden
from kit.gardenlet_controllers import all_but
from kit.gardenlet_seeds import GARDEN, SeedPlace, changing
from kit.processes.deployed_pods import DeployedPod
from kit.world import Place
from kube.errors import NotFound
from kube.resources import DEPLOYMENTS, MUTATING_WEBHOOKS, PRIORITY_CLASSES, VALIDATING_WEBHOOKS

pytestmark = pytest.mark.timeout(900)

NAME = resource_manager.NAME
OPTIONS = {
    "images": Images(resource_manager="image"),
    "omit": all_but(RESOURCE_MANAGER, GARDENLET_AUTOSCALING),
}
OBJECTS = (
    DEPLOYMENTS.path(namespace=GARDEN, name=NAME),
    MUTATING_WEBHOOKS.path(name=NAME),
    VALIDATING_WEBHOOKS.path(name=NAME),
)


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone, with a node on which pods become ready."""
    with Cluster(nodes=1) as cluster:
        body = {**PRIORITY_CLASSES.type_meta, "metadata": {"name": "gardener-system-critical"}, "value": 999998950}
        cluster.api.create(PRIORITY_CLASSES.path(), body)
        yield cluster


def is_gone(place: SeedPlace) -> bool:
    try:
        return not place.seed
    except NotFound:
        return True


async def test_it_is_deployed_first_applies_the_rest_and_goes_last(
    garden: Garden, seed_cluster: Cluster, tmp_path: Path
) -> None:
    place = SeedPlace(garden, seed_cluster)
    system = PRIORITY_CLASSES.path(name="gardener-system-900")
    async with place.gardenlet(declare, **OPTIONS):
        pod = await asyncio.to_thread(pod_of, Place(seed_cluster, GARDEN), NAME)
        with DeployedPod(seed_cluster, pod, tmp_path).start(NAME) as process:
            await asyncio.to_thread(place.finished)
            await asyncio.to_thread(process.wait_until_leading)
            await asyncio.to_thread(eventually, lambda: place.find(system), "system resources to be applied")
            with closing(seed_cluster.audit()) as audit:
                await asyncio.to_thread(place.finished, generation=place.operate("reconcile"))
                assert changing(audit.calls(user_agent=f"gardenlet/seed-of-{place.name}")) == []

            place.garden.delete(CONTROLLER_INSTALLATIONS, place.name)
            place.garden.delete(SEEDS, place.name)
            await soon(partial(is_gone, place), "the Seed to go", state=lambda: place.operation)
    assert not [path for path in OBJECTS if place.find(path)]
    assert not place.find(system)
    with pytest.raises(NotFound):
        seed_cluster.api.get(MANAGED_RESOURCES.path(namespace=GARDEN, name="system"))
    place.remove()
