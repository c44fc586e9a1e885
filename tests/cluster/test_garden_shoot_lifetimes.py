"""Shoots whose credentials have a Quota live no longer than that allows."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.controller_manager.shoot.quota import REASON, declare
from config.controller_manager.controllers import Controllers
from gardener import keys
from gardener.api.garden import PROJECTS, QUOTAS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import format_time
from kube.objects import Object, annotations
from kube.resources import EVENTS

pytestmark = pytest.mark.timeout(600)

NOW = datetime.now(UTC)


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    """With a Quota of a week."""
    place = ShootPlace(garden)
    place.limit(days=7)
    return place


def until(place: ShootPlace, name: str) -> str | None:
    return annotations(place.get(SHOOTS, name)).get(keys.SHOOT_EXPIRATION)


def ends(moment: datetime) -> Object:
    return {"annotations": {keys.SHOOT_EXPIRATION: format_time(moment)}}


async def test_the_lifetime_follows_the_quota(place: ShootPlace) -> None:
    place.shoot("limited", secretBindingName="limited")
    place.shoot("free", metadata=ends(NOW - timedelta(days=1)))
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        await soon(lambda: until(place, "free") is None, "the needless annotation to go")
        created = datetime.fromisoformat(place.meta(SHOOTS, "limited")["creationTimestamp"])
        week = format_time(created + timedelta(days=7))
        await soon(lambda: until(place, "limited") == week, "the annotation")
        place.patch(QUOTAS, "q", {"spec": {"clusterLifetimeDays": None}})
        await soon(lambda: until(place, "limited") is None, "the annotation to go with the limit")


async def test_a_shoot_that_has_expired_is_deleted_after_announcements(place: ShootPlace) -> None:
    place.shoot("old", secretBindingName="limited", metadata=ends(NOW - timedelta(hours=1)))
    place.shoot("ageing", secretBindingName="limited", metadata=ends(NOW + timedelta(days=6, hours=12)))
    later = NOW + timedelta(days=6)

    async with connected(place.garden.cluster) as client:

        async def is_announced() -> bool:
            events = (await client.read(EVENTS.path(namespace=place.namespace)))["items"]
            return [each["involvedObject"]["name"] for each in events if each["reason"] == REASON] == ["ageing"]

        async with run_garden_controller(declare, client, place.namespace, clock=lambda: later):
            await soon(lambda: place.find(SHOOTS, "old") is None, "the Shoot to be deleted")
            await soon(is_announced, "the end of the other one to be announced")
            assert place.find(SHOOTS, "ageing")


async def test_what_two_people_have_to_delete_is_deleted_when_it_has_expired(place: ShootPlace) -> None:
    place.patch(PROJECTS, place.name, {"spec": {"dualApprovalForDeletion": [{"resource": "shoots", "selector": {}}]}})
    place.patch(QUOTAS, "q", {"spec": {"clusterLifetimeDays": 0}})
    place.shoot("old", secretBindingName="limited", metadata=ends(NOW - timedelta(hours=1)))
    place.shoot("limited", secretBindingName="limited")
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client, place.namespace):
        await soon(lambda: place.find(SHOOTS, "old") is None, "the Shoot to be deleted")
        await soon(lambda: until(place, "limited"), "the annotation")
    end = datetime.fromisoformat(until(place, "limited") or "")
    assert end >= NOW + timedelta(days=7), "others have time to put it off"


async def test_a_dry_run_deletes_nothing(place: ShootPlace) -> None:
    place.shoot("old", secretBindingName="limited", metadata=ends(NOW - timedelta(hours=1)))
    place.shoot("new", secretBindingName="limited")
    dry = Controllers(dry_run=True)
    async with (
        connected(place.garden.cluster) as client,
        run_garden_controller(declare, client, place.namespace, controllers=dry),
    ):
        await soon(lambda: until(place, "new"), "all to be looked at")
        assert keys.CONFIRM_DELETION not in annotations(place.get(SHOOTS, "old"))
