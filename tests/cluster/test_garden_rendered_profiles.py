"""The status of a NamespacedCloudProfile is what Shoots choose from: its parent's spec, with its own changes."""

import pytest

from agent.controller_manager.namespaced_cloud_profile import declare
from gardener.api.garden import CLOUD_PROFILES, NAMESPACED_CLOUD_PROFILES
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Object, metadata

pytestmark = pytest.mark.timeout(600)

HUGE = {"name": "huge", "cpu": "64", "gpu": "0", "memory": "256Gi"}
LATER = "2040-01-01T00:00:00Z"


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


def make(place: ShootPlace, name: str, **spec: object) -> None:
    parent = {"kind": "CloudProfile", "name": place.name}
    place.create(NAMESPACED_CLOUD_PROFILES, name, spec={"parent": parent, **spec})


def rendered(place: ShootPlace, name: str = "n") -> Object | None:
    """What is rendered from the present spec."""
    profile = place.get(NAMESPACED_CLOUD_PROFILES, name)
    status: Object = profile.get("status") or {}
    is_current = status.get("observedGeneration") == metadata(profile)["generation"]
    return status["cloudProfileSpec"] if is_current else None


def names(place: ShootPlace, field: str) -> list[str] | None:
    found = rendered(place)
    return None if found is None else [each["name"] for each in found[field]]


async def test_it_follows_the_profile_and_its_parent(place: ShootPlace) -> None:
    versions = {"versions": [{"version": "1.29.2", "expirationDate": LATER}]}
    make(place, "n", machineTypes=[HUGE], kubernetes=versions)
    async with connected(place.garden.cluster) as client, run_garden_controller(declare, client):
        await soon(lambda: names(place, "machineTypes") == ["small", "huge"])
        dates = {
            each["version"]: each.get("expirationDate") for each in (rendered(place) or {})["kubernetes"]["versions"]
        }
        assert dates == {"1.30.1": None, "1.29.2": LATER}
        place.patch(NAMESPACED_CLOUD_PROFILES, "n", {"spec": {"machineTypes": [{**HUGE, "name": "vast"}]}})
        await soon(lambda: names(place, "machineTypes") == ["small", "vast"])
        selector = {"matchLabels": {"a": "b"}}
        place.patch(CLOUD_PROFILES, place.name, {"spec": {"seedSelector": selector}})
        await soon(lambda: (rendered(place) or {}).get("seedSelector") == selector)
        # What the parent has no more, a patch of the status would keep.
        place.patch(CLOUD_PROFILES, place.name, {"spec": {"seedSelector": None}})
        await soon(lambda: "seedSelector" not in (rendered(place) or {}))


async def test_what_is_rendered_already_is_not_written_again(place: ShootPlace) -> None:
    def version() -> str:
        found: str = metadata(place.get(NAMESPACED_CLOUD_PROFILES, "n"))["resourceVersion"]
        return found

    make(place, "n", machineTypes=[HUGE], volumeTypes=[{"name": "fast", "class": "premium"}])
    async with connected(place.garden.cluster) as client:
        async with run_garden_controller(declare, client):
            await soon(lambda: rendered(place))
        before = version()
        async with run_garden_controller(declare, client):
            place.patch(CLOUD_PROFILES, place.name, {"metadata": {"annotations": {"a": "b"}}})
            make(place, "later")
            await soon(lambda: rendered(place, "later"))
    assert version() == before
