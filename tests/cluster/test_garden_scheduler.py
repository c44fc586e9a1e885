"""Shoots get Seeds, or are told why there is none for them."""

from collections.abc import AsyncIterator

import pytest

from kit.eventually import soon
from kit.garden import Garden
from kit.garden_scheduler import run_scheduler, seed_of, told, usable_seed
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.client import Client, Selection
from kube.resources import EVENTS

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


async def events(client: Client, place: ShootPlace) -> set[str]:
    found = await client.list(EVENTS, Selection(place.namespace))
    return {f"{event['type']} {event['reason']}: {event['message']}" for event in found}


async def test_a_shoot_is_bound_to_a_seed(place: ShootPlace, client: Client) -> None:
    seed = usable_seed(place)
    place.shoot()
    async with run_scheduler(client, place.namespace):
        await soon(lambda: seed_of(place) == seed, "the Shoot to be scheduled")
    assert await events(client, place) == {f"Normal SchedulingSuccessful: Scheduled to seed '{seed}'"}
    assert told(place) is None
