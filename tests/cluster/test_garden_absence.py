"""Objects that a cache does not know do not count as missing: watches of single kinds hang here."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from agent.controller_manager.controller_registration.installations.controller import declare as installations
from agent.controller_manager.seed.secrets import declare as secrets
from agent.controller_manager.shoot.maintenance import declare as maintenance
from agent.controller_manager.shoot.quota import declare as quota
from agent.controller_manager.shoot.reference import declare as reference
from agent.gardenlet.common.views import SEEDS_VIEW
from agent.gardenlet.shoot.main.departure import Departures
from gardenapi.api import recognized
from gardener import keys
from gardener.api.garden import (
    BACKUP_BUCKETS,
    BACKUP_ENTRIES,
    CLOUD_PROFILES,
    CONTROLLER_DEPLOYMENTS,
    CONTROLLER_INSTALLATIONS,
    CONTROLLER_REGISTRATIONS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from kit.controllers import Behind, cluster_of
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller, run_garden_controllers, until_idle
from kit.garden_objects import shoot
from kit.garden_scheduler import run_scheduler, seed_of, usable_seed
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import utc_now
from kube.objects import Key, annotations, finalizers
from kube.paths import at
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.client import Client, Selection
from webhooks.admission import User
from webhooks.garden.access import Access
from webhooks.garden.lookups import Lookups
from webhooks.state import SharedListers

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


@pytest.mark.parametrize("behind", [SECRETS, CONFIG_MAPS], ids=str)
async def test_references_of_shoots(place: ShootPlace, behind: Resource) -> None:
    place.create(behind, "a", data={})
    reference_to = {"apiVersion": "v1", "kind": behind.kind, "name": "a"}
    place.shoot(resources=[{"name": "r", "resourceRef": reference_to}])
    running = partial(run_garden_controller, reference, behind=[behind])
    async with connected(place.garden.cluster) as client, running(client, place.namespace):
        await soon(lambda: finalizers(place.get(behind, "a")), "the finalizer")
        await soon(lambda: keys.REFERENCE_PROTECTION in finalizers(place.get(SHOOTS, "s")), "the Shoot's finalizer")


@pytest.mark.parametrize("behind", [QUOTAS, SECRET_BINDINGS], ids=str)
async def test_quotas_of_shoots(place: ShootPlace, behind: Resource) -> None:
    place.shoot(secretBindingName=place.limit(days=7))
    running = partial(run_garden_controller, quota, behind=[behind])
    async with connected(place.garden.cluster) as client, running(client, place.namespace):
        await soon(lambda: keys.SHOOT_EXPIRATION in annotations(place.get(SHOOTS, "s")), "the end")


async def test_profiles_of_shoots_that_are_maintained(place: ShootPlace) -> None:
    place.shoot(
        maintenance={"timeWindow": {"begin": "110000+0000", "end": "140000+0000"}},
        metadata={"annotations": {keys.OPERATION: "maintain"}},
    )
    running = partial(
        run_garden_controller,
        maintenance,
        clock=lambda: datetime(2100, 1, 5, tzinfo=UTC) + timedelta(hours=12),
        behind=[CLOUD_PROFILES],
    )
    async with connected(place.garden.cluster) as client, running(client):
        await soon(lambda: annotations(place.get(SHOOTS, "s")).get(keys.OPERATION) != "maintain", "the maintenance")


async def test_profiles_of_shoots_that_wait_for_a_seed(place: ShootPlace) -> None:
    seed = usable_seed(place)
    place.shoot()
    async with (
        connected(place.garden.cluster) as client,
        run_scheduler(client, place.namespace, behind=[CLOUD_PROFILES]),
    ):
        await soon(lambda: seed_of(place) == seed, "the Seed")


async def installed(client: Client, seed: str) -> set[str]:
    found = await client.list(CONTROLLER_INSTALLATIONS, Selection(field_selector=f"spec.seedRef.name={seed}"))
    return {at(each, "spec", "registrationRef", "name") for each in found}


@pytest.mark.parametrize("behind", [CONTROLLER_REGISTRATIONS, CONTROLLER_DEPLOYMENTS], ids=str)
async def test_registrations_and_deployments(place: ShootPlace, behind: Resource) -> None:
    name = f"{place.name}-x"
    place.create(CONTROLLER_DEPLOYMENTS, name, helm={"rawChart": "YQ=="})
    provided = [{"kind": "Extension", "type": name}]
    place.create(
        CONTROLLER_REGISTRATIONS, name, spec={"resources": provided, "deployment": {"deploymentRefs": [{"name": name}]}}
    )
    seed = place.seed()
    place.shoot(seedName=seed, extensions=[{"type": name}])
    async with (
        connected(place.garden.cluster) as client,
        run_garden_controllers([secrets, installations], client, behind=[behind]),
    ):

        async def is_installed() -> bool:
            return name in await installed(client, seed)

        await soon(is_installed, "the installation")
    place.delete(SHOOTS, "s")


async def test_an_extension_stays_whose_bucket_is_not_known(place: ShootPlace) -> None:
    name = f"{place.name}-backup"
    provided = [{"kind": kind, "type": name} for kind in ("BackupBucket", "BackupEntry")]
    place.create(CONTROLLER_REGISTRATIONS, name, spec={"resources": provided})
    seed = place.seed()
    reference_to = {"name": place.name, "namespace": place.namespace}
    provider = {"type": name, "region": "r"}
    place.create(BACKUP_BUCKETS, place.name, spec={"provider": provider, "seedName": seed, "secretRef": reference_to})
    place.create(BACKUP_ENTRIES, "e", spec={"bucketName": place.name, "seedName": seed})

    async with connected(place.garden.cluster) as client:

        async def is_installed() -> bool:
            return name in await installed(client, seed)

        async with run_garden_controllers([secrets, installations], client):
            await soon(is_installed, "the installation")
        async with run_garden_controllers([secrets, installations], client, behind=[BACKUP_BUCKETS]) as loops:
            place.patch(SEEDS, seed, {"spec": {"provider": {"zones": ["a"]}}})
            await soon(lambda: loops[1].queue.is_idle, "the passes")
            await until_idle(loops[1])
            assert await is_installed()
    place.delete(BACKUP_ENTRIES, "e")


async def test_the_seed_to_which_a_shoot_moves(place: ShootPlace) -> None:
    seed = place.seed()
    async with connected(place.garden.cluster) as client:
        departures = Departures(
            seed_name=seed,
            version="v1",
            seeds=Behind(client, SEEDS).acquire(SEEDS_VIEW),
            seed=cluster_of(client),
            garden=client,
            api=await recognized(client),
            saves_states=False,
            clock=utc_now,
        )
        for name, problem in ((seed, "observing Gardener version not up to date"), ("none", "seed does not exist")):
            moves = shoot(f"{place.namespace}/moves", seedName=name)
            assert problem in await departures.problem(moves)


async def test_what_an_object_refers_to_that_is_reviewed(place: ShootPlace) -> None:
    async with connected(place.garden.cluster) as client:
        behind = cluster_of(client, behind=[CLOUD_PROFILES])
        state = SharedListers(behind, behind)
        lookups, access = Lookups(state, [CLOUD_PROFILES]), Access(client)
        await state.start()
        for name, is_there in ((place.name, True), ("none", False)):
            missed = (CLOUD_PROFILES, Key("", name))
            assert lookups.of_request().need(CLOUD_PROFILES, name) is None
            assert await access.finds(User("ann"), lookups, [missed]) is is_there
            assert (lookups.of_request().need(CLOUD_PROFILES, name) is not None) is is_there
        await state.close()
