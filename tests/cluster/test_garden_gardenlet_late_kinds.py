"""Extensions of a seed whose kinds come late, and go."""

from collections.abc import Iterator
from itertools import product

import pytest

from agent.gardenlet.extensions.controller_installation.care import declare as care
from agent.gardenlet.extensions.controller_installation.required import declare as required
from config.gardenlet.controllers import Controllers, InstallationCare
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api.extensions import NETWORKS
from gardener.api.garden import CONTROLLER_INSTALLATIONS, CONTROLLER_REGISTRATIONS, SEEDS
from gardener.api.kinds import MANAGED_RESOURCES
from kit.eventually import soon
from kit.garden import Garden
from kit.gardenlet_controllers import gardenlet_at_work
from kit.gardenlet_seeds import SeedPlace
from kit.seed_kinds import install_seed_kinds
from kube.objects import Object, condition
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def seed_cluster(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: its kinds come late, and go."""
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def place(garden: Garden, seed_cluster: Cluster) -> Iterator[SeedPlace]:
    place = SeedPlace(garden, seed_cluster)
    resources = {"spec": {"resources": [{"kind": "Network", "type": place.name}]}}
    place.place.patch(CONTROLLER_REGISTRATIONS, place.name, resources)
    yield place
    place.remove()


async def until(place: SeedPlace, kind: str, status: str) -> Object:
    """The condition, once it has this status."""

    def found() -> Object | None:
        reported = condition(place.place.get(CONTROLLER_INSTALLATIONS, place.name), kind) or {}
        return reported if reported.get("status") == status else None

    return await soon(found, f"{kind} to be {status}")  # type: ignore[no-any-return]


def network(place: SeedPlace) -> Object:
    spec = {"type": place.name, "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
    made: Object = place.cluster.api.create(
        NETWORKS.path(namespace="garden"),
        {**NETWORKS.type_meta, "metadata": {"name": place.name, "namespace": "garden"}, "spec": spec},
    )
    return made


def managed_resource(place: SeedPlace, *, is_labelled: bool = True) -> None:
    labels = {keys.CONTROLLER_INSTALLATION_NAME: place.name} if is_labelled else {}
    meta = {"name": place.name, "namespace": "garden", "labels": labels}
    path = MANAGED_RESOURCES.path(namespace="garden")
    made = place.cluster.api.create(
        path, {**MANAGED_RESOURCES.type_meta, "metadata": meta, "spec": {"class": "seed", "secretRefs": []}}
    )
    times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-01-01T00:00:00Z")
    conditions = [
        {"type": kind, "status": status, "reason": "r", "message": "m", **times}
        for kind, status in (
            ("ResourcesApplied", "True"),
            ("ResourcesHealthy", "False"),
            ("ResourcesProgressing", "False"),
        )
    ]
    status = {"observedGeneration": made["metadata"]["generation"], "conditions": conditions}
    place.cluster.api.patch(
        MANAGED_RESOURCES.path(namespace="garden", name=place.name, subresource="status"), {"status": status}
    )


async def test_kinds_come_late_and_go_again(place: SeedPlace) -> None:
    async with place.context() as context, gardenlet_at_work(context, care, required) as loops:
        install_seed_kinds(place.cluster)
        for loop, kind in product(loops, (NETWORKS, MANAGED_RESOURCES)):
            loop.kinds_changed(kind.group)  # as the program does that watches definitions
        unneeded = await until(place, "Required", "False")
        assert unneeded["reason"] == "NoExtensionObjects"
        network(place)
        managed_resource(place)
        needed = await until(place, "Required", "True")
        assert f"[Network/{place.name}]" in needed["message"]
        await until(place, "Healthy", "False")
        await until(place, "Installed", "True")
    # It is gone while no one looks, and its kind with it.
    definition = CUSTOM_RESOURCE_DEFINITIONS.path(name=f"{NETWORKS.plural}.{NETWORKS.group}")
    place.cluster.api.delete(definition)
    await soon(lambda: place.find(definition) is None, "the kind to go")
    place.place.patch(SEEDS, place.name, {"metadata": {"finalizers": ["gardener"]}})
    place.place.delete(SEEDS, place.name)
    async with place.gardenlet(care, required):
        await until(place, "Required", "False")


async def test_a_managed_resource_without_a_label_is_found_at_the_next_check(place: SeedPlace) -> None:
    install_seed_kinds(place.cluster)
    place.report_extensions(Installed="False")
    controllers = Controllers(controller_installation_care=InstallationCare(sync_period=0.2))
    async with place.gardenlet(care, controllers=controllers):
        managed_resource(place, is_labelled=False)
        await until(place, "Installed", "True")
