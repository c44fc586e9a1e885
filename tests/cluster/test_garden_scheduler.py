"""Shoots get Seeds, or report why there is none for them."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from config.scheduler.schema import MINIMAL_DISTANCE, Shoot
from devcluster.testing.faults import LateEvents, Reset, Rule
from gardener.api.garden import SEEDS, SHOOTS
from gardener.garden.scheduling import reports_failure
from kit.controllers import counted
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import looked_at
from kit.garden_scheduler import reported, run_scheduler, seed_of, set_room, usable_seed
from kit.garden_shoots import ShootPlace
from kit.proxied import proxied
from kit.world import connected
from kube.objects import spec, text
from kube.resources import CONFIG_MAPS, EVENTS
from kube.runtime.client import Client, Selection

pytestmark = pytest.mark.timeout(600)

FULL = os.environ.get("SCHEDULER_RACE") == "full"


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


async def said(client: Client, place: ShootPlace) -> set[str]:
    """By Events."""
    found = await client.list(EVENTS, Selection(place.namespace))
    return {f"{event['type']} {event['reason']}: {event['message']}" for event in found}


def no_room(seed: str) -> str:
    return (
        "Failed to schedule Shoot: 0/1 seed cluster candidate(s) are eligible for scheduling:"
        f" {{{seed} => seed does not have available capacity for shoots}}"
    )


async def test_a_shoot_is_bound_and_reports_why_not_until_then(place: ShootPlace, client: Client) -> None:
    seed = usable_seed(place, room=0)
    place.shoot()
    async with run_scheduler(client, place.namespace) as loop:
        await soon(
            lambda: reported(place).get("description") == no_room(seed),
            "the Shoot to be reported that there is no room",
        )
        assert (reported(place)["type"], reported(place)["state"]) == ("Create", "Pending")
        version = place.meta(SHOOTS, "s")["resourceVersion"]
        place.patch(SEEDS, seed, {"metadata": {"labels": {"a": "b"}}})
        await looked_at(loop, SEEDS, place.get(SEEDS, seed))
        assert place.meta(SHOOTS, "s")["resourceVersion"] == version  # that there still is no room is nothing new
        set_room(place, seed, 1)
        await soon(lambda: seed_of(place) == seed and not reported(place), "the Shoot to be scheduled")
        scheduled = f"Normal SchedulingSuccessful: Scheduled to seed '{seed}'"
        failed = f"Warning SchedulingFailed: {no_room(seed)}"

        async def is_said() -> bool:
            return await said(client, place) == {scheduled, failed}

        await soon(is_said, "Events about both")


async def test_the_place_of_a_shoot_that_goes_is_given_to_one_that_waits(place: ShootPlace, client: Client) -> None:
    seed = usable_seed(place, room=1)
    place.shoot("first", seedName=seed)
    place.shoot("ours")
    place.shoot("foreign", schedulerName="other")
    async with run_scheduler(client, place.namespace):
        await soon(lambda: reported(place, "ours").get("description") == no_room(seed), "the Shoot to wait")
        place.delete(SHOOTS, "first")
        await soon(lambda: seed_of(place, "ours") == seed, "the Shoot to be scheduled")
    assert not seed_of(place, "foreign")
    assert not reported(place, "foreign")


async def test_who_is_bound_by_hand_does_not_wait_any_more(place: ShootPlace, client: Client) -> None:
    full, hidden = usable_seed(place, room=0), place.seed("-hidden")
    place.shoot()
    async with run_scheduler(client, place.namespace):
        await soon(lambda: reported(place).get("description") == no_room(full), "the Shoot to wait")
        place.patch(SHOOTS, "s", {"spec": {"seedName": hidden}})
        await soon(lambda: not reported(place), "the status not to report any more that there is no Seed")


async def test_a_region_config_map_is_reread_when_it_changes(place: ShootPlace, client: Client) -> None:
    seed = usable_seed(place)
    named = {"annotations": {"scheduling.gardener.cloud/cloudprofiles": place.name}}
    marked = {"labels": {"scheduling.gardener.cloud/purpose": "region-config"}}
    names = (place.name, f"{place.name}-b")
    for name in names:
        place.garden.create(CONFIG_MAPS, name, namespace="garden", metadata=named | marked, data={"local": "no map"})
    place.shoot()
    shoot = Shoot(candidate_determination_strategy=MINIMAL_DISTANCE)
    async with run_scheduler(client, place.namespace, shoot=shoot):
        wrong = f'Wrong format in region ConfigMap garden/{place.name}, Region "local"'
        await soon(lambda: wrong in reported(place).get("description", ""), "the Shoot to be reported what is wrong")

        async def is_said() -> bool:
            found = await client.list(EVENTS, Selection("garden", field_selector=f"involvedObject.name={names[1]}"))
            return [event["reason"] for event in found] == ["RegionConfigIgnored"]

        await soon(is_said, "an Event that the second one does not count")
        place.garden.patch(CONFIG_MAPS, names[0], {"data": {"local": "{local: 3}"}}, namespace="garden")
        await soon(lambda: seed_of(place) == seed, "the Shoot to be scheduled")
    for name in names:
        place.garden.delete(CONFIG_MAPS, name, namespace="garden")


async def test_no_seed_gets_more_than_it_has_room_for_however_late_watches_are(
    place: ShootPlace, client: Client, tmp_path: Path
) -> None:
    """A fifth of the Shoots is too much. Admission would refuse it, and has nothing to refuse."""
    room = 40 if FULL else 4
    seeds = [usable_seed(place, f"-{letter}", room=room) for letter in "abcd"]
    refused = partial(counted, "scheduler_attempts_total", result="refused")
    async with proxied(place.garden.cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=LateEvents(seconds=0.5)))
        # The answers to some bindings are lost, so that only the late watch reports them.
        proxy.rules.add(Rule(fault=Reset(carried_out=True), methods=("PATCH",), path="/shoots/[^/]+$", times=2))
        before = refused()
        async with run_scheduler(Client(transport, user_agent="test"), place.namespace):
            for number in range(room * 5):
                await asyncio.to_thread(place.shoot, f"s{number:03}")

            async def placed() -> Counter[str]:
                shoots = await client.list(SHOOTS, Selection(place.namespace))
                assert all(spec(shoot).get("seedName") or reports_failure(shoot) for shoot in shoots)
                return Counter(text(spec(shoot).get("seedName")) for shoot in shoots)

            async def is_placed(wanted: dict[str, int]) -> bool:
                return await placed() == wanted

            full = dict.fromkeys((*seeds, ""), room)
            await soon(lambda: is_placed(full), "all Seeds to be full, and the others to be reported")
            assert refused() == before

            async def is_said() -> bool:
                """Of each that has a Seed, the ones with lost answers among them."""
                events = await client.list(EVENTS, Selection(place.namespace))
                successes = (each for each in events if each["reason"] == "SchedulingSuccessful")
                return len({each["involvedObject"]["name"] for each in successes}) == room * len(seeds)

            await soon(is_said, "Events about all bindings")
            set_room(place, seeds[0], room + room // 2)
            began = time.monotonic()
            await soon(
                lambda: is_placed(full | {seeds[0]: room + room // 2, "": room // 2}), "the new places to be taken"
            )
            seconds = time.monotonic() - began
            print(f"PLACED {room // 2} Shoots {seconds:.1f} s after there was room")
            assert not FULL or seconds < 2.0
