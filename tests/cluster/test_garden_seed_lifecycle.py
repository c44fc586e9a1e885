"""Seeds whose Lease is not renewed are unknown, and after a while their Shoots are, too."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from agent.controller_manager.seed import lifecycle
from agent.controller_manager.seed.extensions_check import declare as declare_extensions_check
from agent.controller_manager.seed.lifecycle import declare
from config.controller_manager.controllers import Controllers, Seed
from gardener.api.garden import MANAGED_SEEDS, SEEDS, SHOOTS
from gardener.garden.seeds import LEASE_NAMESPACE
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller, run_garden_controllers
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.clock import format_micro_time, format_time
from kube.errors import AlreadyExists
from kube.objects import Key, Object, condition, key_of, mappings, metadata
from kube.paths import at
from kube.resources import LEASES, NAMESPACES, Resource
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)

HOUR = 3600.0
READY = "GardenletReady"
MESSAGE = "Gardenlet stopped sending heartbeats."


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    with contextlib.suppress(AlreadyExists):
        garden.create(NAMESPACES, LEASE_NAMESPACE)
    return ShootPlace(garden)


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


def renewed(place: ShootPlace, seed: str, moment: datetime) -> None:
    spec: Object = {"spec": {"renewTime": format_micro_time(moment)}}
    try:
        place.garden.create(LEASES, seed, namespace=LEASE_NAMESPACE, **spec)
    except AlreadyExists:
        place.garden.patch(LEASES, seed, spec, namespace=LEASE_NAMESPACE)


def reported(kind: str, status: str = "True", *, since: datetime | None = None) -> Object:
    moment = format_time(since or ago(0))
    common = {"reason": "R", "message": "m", "lastTransitionTime": moment, "lastUpdateTime": moment}
    return {"type": kind, "status": status, **common}


def ready(place: ShootPlace, seed: str) -> None:
    """As its gardenlet states."""
    place.patch(SEEDS, seed, {"status": {"conditions": [reported(READY)]}}, status=True)


def controllers(**options: Any) -> Controllers:
    return Controllers(seed=Seed(monitor_period=HOUR, **options))


async def is_unknown(place: ShootPlace, seed: str) -> Object:
    async def found() -> bool:
        present = condition(place.get(SEEDS, seed), READY) or {}
        assert present.get("status") == "Unknown"
        return True

    await soon(found, f"the Seed {seed} to be unknown")
    return place.get(SEEDS, seed)


def statuses(place: ShootPlace, shoot: str, field: str = "conditions") -> dict[str, str]:
    found = mappings(at(place.get(SHOOTS, shoot), "status", field))
    return {each["type"]: each["status"] for each in found}


async def test_a_seed_is_unknown_when_its_lease_lapses(place: ShootPlace, client: Client) -> None:
    fresh, lapsing, without, new = (place.seed(suffix) for suffix in ("", "-b", "-c", "-d"))
    renewed(place, fresh, ago(0))
    for seed in (fresh, lapsing, without):
        ready(place, seed)
    async with run_garden_controller(declare, client, controllers=controllers()):
        # A moment later, with a timer.
        renewed(place, lapsing, ago(HOUR - 1))
        found = await is_unknown(place, lapsing)
        present = condition(found, READY) or {}
        assert (present["reason"], present["message"]) == (
            "SeedStatusUnknown",
            "Gardenlet stopped posting seed status.",
        )
        assert at(found, "status", "phase") == "Unknown"
        await is_unknown(place, without)
        assert (condition(place.get(SEEDS, fresh), READY) or {})["status"] == "True"
        assert "status" not in place.get(SEEDS, new)

        # The gardenlet is back, and goes for good.
        renewed(place, lapsing, ago(0))
        ready(place, lapsing)
        await soon(lambda: at(place.get(SEEDS, lapsing), "status", "phase") == "NotReady", "another phase")
        place.garden.delete(LEASES, lapsing, namespace=LEASE_NAMESPACE)
        await is_unknown(place, lapsing)


async def test_a_seed_whose_gardenlet_has_a_clock_ahead_is_missed_in_time(place: ShootPlace, client: Client) -> None:
    seed = place.seed()
    renewed(place, seed, ago(-100 * HOUR))
    ready(place, seed)
    async with run_garden_controller(declare, client, controllers=Controllers(seed=Seed(monitor_period=1.0))):
        await is_unknown(place, seed)


async def test_who_does_not_know_the_phase_can_patch_what_it_has_just_written(
    place: ShootPlace, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "QUIET", timedelta(seconds=2))
    seed = place.seed()
    renewed(place, seed, ago(0))
    ready(place, seed)
    async with run_garden_controllers((declare, declare_extensions_check), client, controllers=controllers()):
        await soon(lambda: at(place.get(SEEDS, seed), "status", "phase") == "NotReady", "the phase")
        for number in range(5):
            present = place.get(SEEDS, seed)
            status = {name: value for name, value in present["status"].items() if name != "phase"}
            written = await client.replace(SEEDS, {**present, "status": status}, subresource="status")
            await asyncio.sleep(0.2)
            meta = {"resourceVersion": metadata(written)["resourceVersion"]}
            patch = {"metadata": meta, "status": {"observedGeneration": number}}
            await client.patch(SEEDS, seed, patch, subresource="status")
        await soon(lambda: at(place.get(SEEDS, seed), "status", "phase") == "NotReady", "the phase, when it is quiet")


class Overtaken(Client):
    """When a Seed is about to be reported to be lost, its gardenlet is back."""

    place: ShootPlace
    seed: str
    is_back = False

    async def patch(self, resource: Resource, name: Key | str, *arguments: Any, **options: Any) -> Object:
        if key_of(name).name == self.seed and not self.is_back:
            self.is_back = True
            await asyncio.to_thread(self._report)
        return await super().patch(resource, name, *arguments, **options)

    def _report(self) -> None:
        renewed(self.place, self.seed, ago(0))
        status = {"conditions": [reported(READY) | {"message": "back"}]}
        self.place.patch(SEEDS, self.seed, {"status": status}, status=True)


async def test_a_gardenlet_that_is_back_is_believed(place: ShootPlace, client: Client) -> None:
    seed, overtaken = place.seed(), Overtaken(client.transport, user_agent="overtaken")
    overtaken.place, overtaken.seed = place, seed
    renewed(place, seed, ago(2 * HOUR))
    ready(place, seed)
    async with run_garden_controller(declare, overtaken, controllers=controllers()):
        await soon(lambda: at(place.get(SEEDS, seed), "status", "phase") == "NotReady", "a phase")
        assert (condition(place.get(SEEDS, seed), READY) or {})["message"] == "back"


async def test_shoots_of_a_lost_seed_are_unknown(place: ShootPlace, client: Client) -> None:
    lost, other = place.seed(), place.seed("-b")
    for seed in (lost, other):
        renewed(place, seed, ago(0))
        ready(place, seed)
    # The last two are on their way: the Seed that they leave is the one that reports for them.
    seeds = {"a": (lost, lost), "b": (other, other), "leaving": (other, lost), "coming": (lost, other)}
    for shoot, (scheduled, present) in seeds.items():
        place.shoot(shoot, seedName=scheduled)
        status = {
            "conditions": [reported("EveryNodeReady"), reported("Own")],
            "constraints": [reported("CACertificateValiditiesAcceptable")],
            "seedName": present,
        }
        place.patch(SHOOTS, shoot, {"status": status}, status=True)
    async with run_garden_controller(declare, client, controllers=controllers(shoot_monitor_period=0.001)):
        renewed(place, lost, ago(2 * HOUR))

        async def all_unknown(shoot: str) -> bool:
            found = statuses(place, shoot)
            own = found.pop("Own", "True")
            constraints = statuses(place, shoot, "constraints")
            assert own == "True"
            assert constraints.pop("CACertificateValiditiesAcceptable", "True") == "True"
            assert (len(found), len(constraints)) == (5, 2)
            assert set(found.values()) | set(constraints.values()) == {"Unknown"}
            return True

        for shoot in ("a", "leaving"):
            await soon(partial(all_unknown, shoot), f"the Shoot {shoot} to be unknown")
        assert (condition(place.get(SHOOTS, "a"), "EveryNodeReady") or {})["message"] == MESSAGE
        place.shoot("c", seedName=lost)
        await soon(lambda: all_unknown("c"), "a new Shoot to be unknown")
        for shoot in ("b", "coming"):
            assert statuses(place, shoot) == {"EveryNodeReady": "True", "Own": "True"}

        # A gardenlet that is back is not contradicted.
        renewed(place, lost, ago(0))
        ready(place, lost)
        place.patch(SHOOTS, "a", {"status": {"conditions": [reported("EveryNodeReady")]}}, status=True)
        renewed(place, other, ago(2 * HOUR))
        await soon(lambda: all_unknown("b"), "the Shoot of the other Seed to be unknown")
        assert statuses(place, "a") == {"EveryNodeReady": "True"}


async def test_a_new_certificate_of_a_managed_seed_is_requested_once(garden: Garden, client: Client) -> None:
    place = ShootPlace(garden, is_garden=True)
    provider = {"type": place.name, "secretName": place.name, "primary": True}
    place.shoot(
        place.name,
        dns={"domain": f"{place.name}.example.org", "providers": [provider]},
        kubernetes={"version": "1.30.1", "verticalPodAutoscaler": {"enabled": True}},
    )
    spec = garden_object(MANAGED_SEEDS)["spec"]
    spec["shoot"]["name"] = place.name
    place.create(MANAGED_SEEDS, place.name, spec=spec)
    seed = place.seed()
    expired = {"conditions": [reported(READY)], "clientCertificateExpirationTimestamp": format_time(ago(HOUR))}
    place.patch(SEEDS, seed, {"status": expired}, status=True)

    def requested() -> int:
        return int(at(place.get(MANAGED_SEEDS, place.name), "operation", "sequence") or 0)

    async with run_garden_controller(declare, client, controllers=controllers()):
        await soon(requested, "the ManagedSeed to be reconciled")
        place.patch(SEEDS, seed, {"status": {"conditions": [reported(READY)]}}, status=True)
        await is_unknown(place, seed)
        assert requested() == 1
