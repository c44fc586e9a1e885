"""When something in a Project was used last stands in its status."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from agent.controller_manager.project.activity import declare
from gardener import keys
from gardener.api.garden import PROJECTS, QUOTAS, SECRET_BINDINGS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import format_time, parse_time
from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

OLD = format_time(datetime.now(UTC) - timedelta(days=8))
QUOTA = {"scope": {"apiVersion": "v1", "kind": "Secret"}, "metrics": {"cpu": "100"}}
LABELLED: Object = {
    "metadata": {
        "labels": {keys.SECRET_BINDING_REFERENCE: "true", f"{keys.PROVIDER_LABEL_PREFIX}local": "true"},
        "finalizers": [keys.CREDENTIALS_FINALIZER],
    }
}
UNLABELLED: Object = {"metadata": {"labels": dict.fromkeys(LABELLED["metadata"]["labels"]), "finalizers": None}}


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


class Activity:
    def __init__(self, garden: Garden) -> None:
        self.place = ShootPlace(garden)
        self.witness = ShootPlace(garden)
        """Changes in it are reported after those that were made before."""

    def forget(self, place: ShootPlace) -> None:
        place.patch(PROJECTS, place.name, {"status": {"lastActivityTimestamp": OLD}}, status=True)

    def recorded(self, place: ShootPlace) -> str:
        stamp: str = (place.get(PROJECTS, place.name).get("status") or {}).get("lastActivityTimestamp") or ""
        return stamp

    async def is_noticed(self, place: ShootPlace | None = None) -> None:
        found = place or self.place
        await soon(lambda: self.recorded(found) not in {"", OLD}, "the activity to be recorded")
        assert datetime.now(UTC) - parse_time(self.recorded(found)) < timedelta(minutes=15)
        self.forget(found)


@pytest.fixture
def activity(garden: Garden) -> Activity:
    return Activity(garden)


async def test_shoots_count_when_they_come_change_and_go(client: Client, activity: Activity) -> None:
    place, witness = activity.place, activity.witness
    async with run_garden_controller(declare, client):
        activity.forget(place)
        place.shoot()
        await activity.is_noticed()
        place.patch(SHOOTS, "s", {"metadata": {"labels": {"a": "b"}}})
        place.create(CONFIG_MAPS, "c")
        witness.shoot()
        await activity.is_noticed(witness)
        assert activity.recorded(place) == OLD
        place.patch(SHOOTS, "s", {"spec": {"hibernation": {"enabled": True}}})
        await activity.is_noticed()
        place.delete(SHOOTS, "s")
        await activity.is_noticed()


async def test_credentials_and_quotas_count_but_not_what_controllers_write_on_them(
    client: Client, activity: Activity
) -> None:
    place, witness = activity.place, activity.witness
    for each in (place, witness):
        each.create(SECRETS, "s", stringData={"key": "value"})
        each.create(QUOTAS, "s", spec=QUOTA)
    async with run_garden_controller(declare, client):
        for kind, change in (
            (SECRETS, {"stringData": {"key": "other"}}),
            (QUOTAS, {"spec": {"metrics": {"cpu": "99"}}}),
        ):
            witness.patch(kind, "s", LABELLED)
            activity.forget(place)
            activity.forget(witness)
            place.patch(kind, "s", LABELLED)
            witness.patch(kind, "s", change)
            await activity.is_noticed(witness)
            assert activity.recorded(place) == OLD
            place.patch(kind, "s", change)
            await activity.is_noticed()
            place.patch(kind, "s", UNLABELLED)
            place.delete(kind, "s")
            witness.patch(kind, "s", {"metadata": {"finalizers": None}})
            witness.delete(kind, "s")
            await activity.is_noticed(witness)
            assert activity.recorded(place) == OLD


async def test_a_binding_of_another_project_counts_where_its_credentials_are(
    client: Client, activity: Activity
) -> None:
    place, other = activity.place, activity.witness
    secret = {"name": place.name, "namespace": place.namespace}
    async with run_garden_controller(declare, client):
        activity.forget(place)
        other.create(SECRET_BINDINGS, "b", provider={"type": other.name}, secretRef=secret)
        await activity.is_noticed()
        other.delete(SECRET_BINDINGS, "b")
        await activity.is_noticed()


async def test_what_came_while_no_process_watched_is_noticed_and_recorded_once(
    client: Client, activity: Activity
) -> None:
    activity.place.shoot()
    async with run_garden_controller(declare, client):
        await soon(lambda: activity.recorded(activity.place), "the activity to be recorded")
    version = activity.place.meta(PROJECTS, activity.place.name)["resourceVersion"]
    async with run_garden_controller(declare, client):
        activity.forget(activity.witness)
        activity.witness.shoot()
        await activity.is_noticed(activity.witness)
    assert activity.place.meta(PROJECTS, activity.place.name)["resourceVersion"] == version
