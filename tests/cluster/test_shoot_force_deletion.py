"""A Shoot that is deleted by force goes, whatever does not answer; what that leaves is reported.

Nothing is there but objects: the clusters of the Shoots are dead. Each test has a Shoot of its own.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from agent.gardenlet.shoot.main.controller import declare
from agent.gardenlet.shoot.main.tasks.force import Patience
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from gardener import keys
from gardener.api.druid import ETCDS
from gardener.api.extensions import CLUSTERS, EXTENSIONS, INFRASTRUCTURES
from gardener.api.garden import BASTIONS, CLOUD_PROFILES, SEEDS, SHOOT_STATES, SHOOTS
from gardener.api.kinds import MACHINES, MANAGED_RESOURCES
from kit.eventually import soon
from kit.garden_objects import garden_object
from kit.played_shoots import NAMESPACE, SEED, LeftShoot, PlayedPlace
from kube.objects import Object, annotations
from kube.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SERVICES
from kube.runtime.connection import load_kubeconfig
from localprocesses.ports import free_port

pytestmark = [pytest.mark.timeout(600)]

HELD: Object = {"finalizers": ["example.com/held"]}
SHORT = Patience(objects=1.0, longest=1.0)


@pytest.fixture(scope="module")
def place(devcluster_run: RunClusters) -> Iterator[PlayedPlace]:
    with Cluster() as own:
        yield PlayedPlace(own)


@asynccontextmanager
async def gardenlet(place: PlayedPlace) -> AsyncIterator[None]:
    """All API servers of Shoots are dead."""
    own = place.cluster
    dead = own.kubeconfig.read_text().replace(own.url, f"https://127.0.0.1:{free_port()}")
    (path := own.state / "dead.kubeconfig").write_text(dead)
    async with place.gardenlet(partial(declare, patience=SHORT), shoots=load_kubeconfig(path)):
        yield


def fill(left: LeftShoot) -> None:
    """All that holds a namespace."""
    left.create(NAMESPACES, left.namespace)
    whole = {name: {"kind": name} for name in ("cloudProfile", "seed", "shoot")}
    left.create(CLUSTERS, left.namespace, spec=whole)
    extension = {"type": "local"}
    left.create(EXTENSIONS, "silent", metadata=HELD, spec=extension)
    left.create(EXTENSIONS, "answers", metadata=HELD, spec=extension)
    left.create(
        INFRASTRUCTURES, left.name, metadata=HELD, spec={"type": "local", "region": "local", "secretRef": {"name": "s"}}
    )
    for of, kind in (("seed", {"class": "seed"}), ("shoot", {"keepObjects": True})):
        left.create(MANAGED_RESOURCES, of, metadata=HELD, spec={"secretRefs": [{"name": "s"}], **kind})
    left.create(MACHINES, "machine", metadata=HELD, spec={})
    left.create(SERVICES, "balancer", metadata=HELD, spec={"ports": [{"port": 443}]})
    left.create(CONFIG_MAPS, "kept", metadata=HELD)
    left.place.garden.create(SHOOT_STATES, left.name, namespace=NAMESPACE, spec={})


async def test_an_extension_that_never_answers_and_a_dead_cluster_hold_nothing(place: PlayedPlace) -> None:
    left = LeftShoot(place, "a", forced=True)
    fill(left)
    left.delete()
    async with gardenlet(place):
        found = partial(left.find, EXTENSIONS, "answers")
        await soon(lambda: keys.CONFIRM_FORCE_DELETION in annotations(found() or {}), "the extension to be queried")
        place.garden.patch(EXTENSIONS, "answers", {"metadata": {"finalizers": None}}, namespace=left.namespace)
        await left.until_gone()
        await soon(left.reported, "what is left to be reported")
    for each in ("Extension silent", "Infrastructure a", "Machine machine", "ManagedResource seed", "Service balancer"):
        assert f"{each} (" in left.reported()
    # Of these nothing is left that a user could look for.
    assert "answers" not in left.reported()
    assert "ManagedResource shoot" not in left.reported()
    assert left.find(SHOOT_STATES, left.name, namespace=NAMESPACE) is None


async def test_extensions_see_that_it_goes_by_force(place: PlayedPlace) -> None:
    left = LeftShoot(place, "b", forced=True)
    left.create(NAMESPACES, left.namespace)
    left.create(CLUSTERS, left.namespace, spec={name: {"kind": name} for name in ("cloudProfile", "seed", "shoot")})
    left.create(EXTENSIONS, "silent", metadata=HELD, spec={"type": "local"})
    left.delete()

    def shown() -> bool:
        spec = (left.find(CLUSTERS, left.namespace) or {}).get("spec", {})
        return keys.CONFIRM_FORCE_DELETION in annotations(spec.get("shoot", {})) and spec["seed"] == {"kind": "seed"}

    async with gardenlet(place):
        await soon(shown, "the Cluster to show it")
        await left.until_gone()


@pytest.mark.parametrize("name", ["without-namespace", "with-workers"])
async def test_every_shape_goes(place: PlayedPlace, name: str) -> None:
    spec = garden_object(SHOOTS)["spec"]["provider"]
    left = LeftShoot(place, name[:12], forced=True, **({"provider": spec} if name == "with-workers" else {}))
    if name == "with-workers":
        left.create(NAMESPACES, left.namespace)
    left.delete()
    async with gardenlet(place):
        await left.until_gone()
    assert left.reported() == ""


async def test_its_bastions_go_by_force_first(place: PlayedPlace) -> None:
    left = LeftShoot(place, "c", forced=True)
    spec = {**garden_object(BASTIONS)["spec"], "shootRef": {"name": left.name}, "seedName": SEED}
    place.garden.create(BASTIONS, "b", namespace=NAMESPACE, spec=spec)
    left.delete()
    async with gardenlet(place):
        found = partial(left.find, BASTIONS, "b", namespace=NAMESPACE)
        await soon(lambda: keys.CONFIRM_FORCE_DELETION in annotations(found() or {}), "the Bastion to be forced")
        assert not left.is_gone()
        place.garden.delete(BASTIONS, "b", namespace=NAMESPACE)
        # A change is looked at at once.
        place.garden.patch(SHOOTS, left.name, {"spec": {"purpose": "testing"}}, namespace=NAMESPACE)
        await left.until_gone()


async def test_it_goes_without_its_seed_its_profile_and_kinds_of_the_seed(place: PlayedPlace) -> None:
    """The last test: what others need is removed."""
    left = LeftShoot(place, "d", forced=True)
    left.create(NAMESPACES, left.namespace)
    for each in (ETCDS, MACHINES, INFRASTRUCTURES):
        place.garden.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{each.plural}.{each.group}")
    place.garden.delete(CLOUD_PROFILES, "local")
    place.garden.delete(SEEDS, SEED)
    left.delete()
    async with gardenlet(place):
        await left.until_gone()
