"""A seed of the original's gardenlet: its components are taken over as they are, and cost nothing afterwards."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from components import gardenlet_autoscaling, resource_manager
from components.parts import GARDEN
from components.seed_component import SeedInputs
from config.gardenlet.schema import GardenletConfiguration
from conformance.seed_objects import recorded_as_stored
from devcluster.cluster import Cluster
from gardener import keys
from gardener.api.kinds import SERVICE_MONITORS, VERTICAL_POD_AUTOSCALERS
from kit.kinds import serve
from kit.objects import obj
from kit.shoot_inputs import NamedSecrets
from kit.world import WRITES, Place, World, connected
from kube.apply.object_sets import ChangeSet, Marks, ObjectSets
from kube.objects import Object, annotations, labels, uid
from kube.runtime.cache import Caches
from kube.runtime.discovery import Discovery
from localprocesses.pki import Authority

PROGRAM = "gardenlet"
MARKS = Marks(
    label="example.com/of",
    value="x",
    owner="example.com/owner",
    digest="example.com/digest",
    field_manager=PROGRAM,
    collected=keys.GARBAGE_COLLECTABLE,
    adopts=True,
)
BUNDLE = Authority.create("ca-seed").bundle.decode()


@pytest.fixture(scope="module")
def own_cluster(devcluster_run: object) -> Iterator[Cluster]:
    """Not the one of all tests: webhooks that nothing serves are installed."""
    with Cluster() as own:
        serve(own, VERTICAL_POD_AUTOSCALERS, SERVICE_MONITORS)
        Place(own, GARDEN).create(obj("Namespace", GARDEN))
        yield own


@contextlib.asynccontextmanager
async def started(cluster: Cluster) -> AsyncIterator[ObjectSets]:
    """As a gardenlet that has just been started."""
    async with connected(cluster, f"{PROGRAM}/1") as client:
        caches = Caches(client)
        sets = ObjectSets(
            client=client, discovery=Discovery(client), caches=caches, marks=MARKS, on_change=lambda _: None
        )
        yield sets
        await sets.close()
        await caches.close()


INPUTS = SeedInputs(config=GardenletConfiguration(), seed={}, secrets=NamedSecrets())


def desired() -> list[Object]:
    values = resource_manager.Values(image="image", server_secret="server", ca_bundle=BUNDLE, zones=("0",))
    return [*gardenlet_autoscaling.COMPONENT.objects(INPUTS), *resource_manager.objects(values)]


async def test_components_of_the_original_are_taken_over_once(own_cluster: Cluster) -> None:
    place = Place(own_cluster, GARDEN)
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in desired() if obj["kind"] != "ConfigMap"}
    theirs = [obj for obj in recorded_as_stored(ca_bundle=BUNDLE) if (obj["kind"], obj["metadata"]["name"]) in names]
    async with connected(own_cluster, f"{PROGRAM}/v1.104.3") as client:
        original = World(client, GARDEN)
        before = [await original.create(obj) for obj in theirs]
    assert len(before) == len(names)

    async with started(own_cluster) as sets:
        changes = await sets.apply(desired(), owner="resource-manager")
    assert changes.is_complete, changes.errors
    assert len(changes.created) == 1, "the ConfigMap with the configuration"
    assert (len(changes.updated), changes.removed) == (len(names), [])
    for old in before:
        live = place.get(old["kind"], old["metadata"]["name"])
        assert uid(live) == uid(old)
        assert labels(old).items() <= labels(live).items()
        if old["kind"] == "Service":
            assert live["spec"]["clusterIP"] == old["spec"]["clusterIP"]
        if old["kind"] == "Deployment":
            references = {name for name in annotations(live) if name.startswith(keys.REFERENCE_PREFIX)}
            assert len(references) == 3, "none of the original's is left"

    with contextlib.closing(own_cluster.audit()) as audit:
        async with started(own_cluster) as sets:
            again: ChangeSet = await sets.apply(desired(), owner="resource-manager")
        assert (bool(again), again.is_complete) == (False, True)
        assert not audit.calls(user_agent=PROGRAM, verbs=WRITES)
