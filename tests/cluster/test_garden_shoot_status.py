"""What Shoots show: labels that sum up their status, and the conditions of the Seeds that they run."""

import asyncio
import itertools
from typing import Any

import pytest

from agent.controller_manager.shoot.conditions import declare as conditions
from agent.controller_manager.shoot.status_label import declare as labels
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Key, Object, key_of
from kube.paths import at
from kube.resources import Resource
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

MOMENT = "2026-01-01T00:00:00Z"


def condition(kind: str, status: str = "True") -> Object:
    times = {"lastTransitionTime": MOMENT, "lastUpdateTime": MOMENT}
    return {"type": kind, "status": status, "reason": "R", "message": "m", **times}


def operation(state: str) -> Object:
    reported = {"description": "d", "lastUpdateTime": MOMENT, "progress": 50, "type": "Reconcile"}
    return {"status": {"lastOperation": {**reported, "state": state}}}


def managed_seed(place: ShootPlace) -> Object:
    dns = {"provider": {"type": place.name, "secretRef": {"name": "dns", "namespace": "garden"}}}
    seed = {"spec": {"ingress": {"controller": {"kind": "nginx"}}, "dns": dns}}
    config = {"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration"}
    return {"shoot": {"name": place.name}, "gardenlet": {"config": config | {"seedConfig": seed}}}


class Overtaken(Client):
    """Whenever it labels a Shoot, a user has just written the status."""

    place: ShootPlace
    numbers = itertools.count(1)

    async def patch(self, resource: Resource, name: Key | str, *arguments: Any, **options: Any) -> Object:
        await asyncio.to_thread(
            self.place.patch,
            SHOOTS,
            key_of(name).name,
            {"status": {"observedGeneration": next(self.numbers)}},
            status=True,
        )
        return await super().patch(resource, name, *arguments, **options)


async def test_a_status_that_changes_all_the_time_keeps_no_label_from_being_written(garden: Garden) -> None:
    place = ShootPlace(garden)
    place.shoot(seedName=place.seed())
    async with connected(garden.cluster) as plain:
        client = Overtaken(plain.transport, user_agent="overtaken")
        client.place = place
        async with run_garden_controller(labels, client, place.namespace):
            await soon(lambda: "shoot.gardener.cloud/status" in place.meta(SHOOTS, "s")["labels"], "the label")


async def test_labels_follow_the_status(garden: Garden) -> None:
    place = ShootPlace(garden)
    place.shoot(seedName=place.seed(), metadata={"labels": {"own": "1"}})

    def shown() -> Any:
        kept = place.meta(SHOOTS, "s")["labels"]
        return {name.removeprefix("shoot.gardener.cloud/"): kept[name] for name in kept if "extensions" not in name}

    seed = f"seed.gardener.cloud/{place.name}"
    async with connected(garden.cluster) as client, run_garden_controller(labels, client, place.namespace):
        await soon(lambda: shown() == {"own": "1", "status": "healthy", seed: "true"}, "the labels")
        place.patch(SHOOTS, "s", operation("Error"), status=True)
        await soon(lambda: shown()["status"] == "unhealthy", "the bad news")
        place.patch(SHOOTS, "s", {"metadata": {"labels": {"shoot.gardener.cloud/status": "fine"}}})
        await soon(lambda: shown()["status"] == "unhealthy", "the label to be corrected")
        place.patch(SHOOTS, "s", {"status": {"seedName": f"{place.name}-b"}}, status=True)
        await soon(lambda: shown().get(f"{seed}-b") == "true", "the Seed that it leaves")
        place.patch(SHOOTS, "s", {"status": {**operation("Succeeded")["status"], "seedName": None}}, status=True)
        await soon(lambda: shown() == {"own": "1", "status": "healthy", seed: "true"}, "the good news")


async def test_a_shoot_shows_the_conditions_of_its_seed(garden: Garden) -> None:
    place = ShootPlace(garden, is_garden=True)
    kubernetes = {"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}}
    dns = {"domain": f"{place.name}.example.com", "providers": [{"type": "unmanaged", "primary": True}]}
    place.shoot(place.name, kubernetes=kubernetes, dns=dns)

    def shown() -> Object:
        found = at(place.get(SHOOTS, place.name), "status", "conditions") or []
        return {each["type"]: each["status"] for each in found}

    def report(*found: Object, of: Any = SEEDS) -> None:
        place.patch(of, place.name, {"status": {"conditions": list(found)}}, status=True)

    report(condition("APIServerAvailable"), condition("Foreign"), of=SHOOTS)
    async with connected(garden.cluster) as client, run_garden_controller(conditions, client, place.namespace):
        await soon(lambda: shown() == {"APIServerAvailable": "True"}, "the foreign condition to go")
        place.create(MANAGED_SEEDS, place.name, spec=managed_seed(place))
        place.seed()
        report(condition("GardenletReady", "Unknown"))
        await soon(lambda: shown() == {"APIServerAvailable": "True", "GardenletReady": "Unknown"}, "the new one")
        report(condition("GardenletReady"))
        await soon(lambda: shown()["GardenletReady"] == "True", "its change")
        place.delete(MANAGED_SEEDS, place.name)
        await soon(lambda: shown() == {"APIServerAvailable": "True"}, "what is not managed any more to be forgotten")
