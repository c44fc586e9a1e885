"""Bastions live as long as there is a use for them, from heartbeat to heartbeat."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.controller_manager.bastion import Bastion as KeptBastion
from agent.controller_manager.bastion import Reconciler, declare
from agent.controller_manager.common.api import SHOOTS_VIEW
from config.controller_manager.controllers import Bastion, Controllers
from gardener import keys
from gardener.api.garden import BASTIONS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import format_time
from kube.objects import Object, annotations
from kube.runtime.cache import Caches, Store, View
from kube.runtime.status import StatusWriter

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    place = ShootPlace(garden)
    place.shoot("one", seedName=place.seed())
    place.shoot("two", seedName=place.name)
    return place


def bastion(place: ShootPlace, name: str, shoot: str = "one") -> None:
    spec = garden_object(BASTIONS)["spec"] | {"shootRef": {"name": shoot}}
    place.create(BASTIONS, name, spec=spec)


def status(place: ShootPlace, name: str) -> Object:
    return place.get(BASTIONS, name).get("status") or {}


async def gone(place: ShootPlace, *names: str) -> None:
    await soon(lambda: not any(place.find(BASTIONS, name) for name in names), f"{names} to be deleted")


async def test_a_bastion_gets_a_heartbeat_and_goes_when_it_has_expired(place: ShootPlace) -> None:
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        bastion(place, "b")
        await soon(lambda: status(place, "b").get("expirationTimestamp"), "a heartbeat")
        old = datetime.now(UTC) - timedelta(minutes=30)
        place.patch(BASTIONS, "b", {"status": {"lastHeartbeatTimestamp": format_time(old)}}, status=True)
        place.patch(BASTIONS, "b", {"metadata": {"annotations": {keys.OPERATION: "keepalive"}}})
        await soon(lambda: keys.OPERATION not in annotations(place.get(BASTIONS, "b")), "the operation to be done")
        assert status(place, "b")["lastHeartbeatTimestamp"] > format_time(old)
        beat = datetime.now(UTC) - timedelta(hours=2)
        place.patch(BASTIONS, "b", {"status": {"lastHeartbeatTimestamp": format_time(beat)}}, status=True)
        await gone(place, "b")


async def test_a_bastion_goes_with_its_shoot_and_when_that_moves(place: ShootPlace) -> None:
    place.patch(SHOOTS, "one", {"metadata": {"finalizers": ["example.com/hold"]}})
    bastion(place, "of-one")
    bastion(place, "of-two", "two")
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        await soon(lambda: status(place, "of-two"), "a heartbeat")
        place.delete(SHOOTS, "one")
        await gone(place, "of-one")
        assert place.find(BASTIONS, "of-two")
        place.patch(SHOOTS, "two", {"spec": {"seedName": place.seed("-b")}})
        await gone(place, "of-two")
    place.patch(SHOOTS, "one", {"metadata": {"finalizers": None}})


async def test_what_is_not_known_of_shoots_yet_deletes_no_bastion(place: ShootPlace) -> None:
    bastion(place, "b")
    async with connected(place.garden.cluster) as client:
        caches = Caches(client, namespaces=[place.namespace])
        async with caches.use(View(BASTIONS, KeptBastion.of)) as bastions:
            reconciler = Reconciler(
                client=client,
                status=StatusWriter(client, bastions),
                bastions=bastions,
                shoots=Store(SHOOTS_VIEW),
                max_lifetime=timedelta(days=1),
                clock=lambda: datetime.now(UTC),
            )
            await reconciler.reconcile(place.key("b"))
    assert status(place, "b")["expirationTimestamp"]


async def test_no_heartbeat_keeps_a_bastion_for_ever(place: ShootPlace) -> None:
    bastion(place, "b")
    controllers = Controllers(bastion=Bastion(max_lifetime=3600.0))
    later = datetime.now(UTC) + timedelta(hours=2)
    beat = {"lastHeartbeatTimestamp": format_time(datetime.now(UTC))}
    place.patch(BASTIONS, "b", {"status": beat}, status=True)
    async with (
        connected(place.garden.cluster) as client,
        run_garden_controller(declare, client, place.namespace, controllers=controllers, clock=lambda: later),
    ):
        await gone(place, "b")
