"""Conditions of Seeds report how their BackupBuckets and ControllerInstallations are."""

from collections.abc import AsyncIterator

import pytest

from agent.controller_manager.seed import backup_buckets_check, extensions_check
from config.controller_manager.controllers import Controllers, SeedCheck
from config.shared import ConditionThreshold
from gardener.api.garden import BACKUP_BUCKETS, CONTROLLER_INSTALLATIONS, SEEDS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Object, condition, metadata
from kube.paths import at
from kube.runtime.client import Client

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


@pytest.fixture
def place(garden: Garden) -> ShootPlace:
    return ShootPlace(garden)


def patient(kind: str, seconds: float) -> SeedCheck:
    return SeedCheck(condition_thresholds=(ConditionThreshold(type=kind, duration=seconds),))


async def says(client: Client, seed: str, kind: str, status: str, reason: str) -> Object:
    async def found() -> bool:
        reported = condition(await client.get(SEEDS, seed), kind) or {}
        assert (reported.get("status"), reported.get("reason")) == (status, reason)
        return True

    await soon(found, f"the condition {kind}")
    return await client.get(SEEDS, seed)


def broken(description: str | None) -> Object:
    return {"status": {"lastError": None if description is None else {"description": description}}}


async def test_backup_buckets(place: ShootPlace, client: Client) -> None:
    kind = "BackupBucketsReady"
    seed, other = place.seed(), place.seed("-b")
    secret = {"name": place.name, "namespace": place.namespace}
    spec = {"provider": {"type": place.name, "region": "r"}, "secretRef": secret}
    controllers = Controllers(seed_backup_buckets_check=patient(kind, 3600))
    async with run_garden_controller(backup_buckets_check.declare, client, controllers=controllers):
        place.create(BACKUP_BUCKETS, seed, spec={**spec, "seedName": seed})
        found = await says(client, seed, kind, "True", "BackupBucketsAvailable")
        assert at(found, "status", "phase") == "NotReady"
        place.patch(BACKUP_BUCKETS, seed, broken("a"), status=True)
        found = await says(client, seed, kind, "Progressing", "BackupBucketsError")
        assert (condition(found, kind) or {})["message"] == (
            f"The following BackupBuckets have issues:\n* Name: {seed}, Error: a"
        )
        since = (condition(found, kind) or {})["lastTransitionTime"]
    quick = Controllers(seed_backup_buckets_check=patient(kind, 1))
    async with run_garden_controller(backup_buckets_check.declare, client, controllers=quick):
        # A timer goes off when it has been so for too long.
        found = await says(client, seed, kind, "False", "BackupBucketsError")
        assert (condition(found, kind) or {})["lastTransitionTime"] > since
        place.patch(BACKUP_BUCKETS, seed, broken(None), status=True)
        await says(client, seed, kind, "True", "BackupBucketsAvailable")
        place.patch(SEEDS, seed, {"status": {"conditions": []}}, status=True)
        await says(client, seed, kind, "True", "BackupBucketsAvailable")
        place.delete(BACKUP_BUCKETS, seed)
        await says(client, seed, kind, "Unknown", "BackupBucketsGone")
    assert condition(place.get(SEEDS, other), kind) is None


async def test_extensions(place: ShootPlace, client: Client) -> None:
    kind, seed = "ExtensionsReady", place.seed()
    references = {"registrationRef": {"name": place.name}, "seedRef": {"name": seed}}
    controllers = Controllers(seed_extensions_check=patient(kind, 3600))
    async with run_garden_controller(extensions_check.declare, client, controllers=controllers):
        place.create(CONTROLLER_INSTALLATIONS, place.name, spec=references)
        await says(client, seed, kind, "False", "NotAllExtensionsInstalled")
        place.patch(CONTROLLER_INSTALLATIONS, place.name, {"status": {"conditions": _conditions()}}, status=True)
        found = await says(client, seed, kind, "True", "AllExtensionsReady")
        version = metadata(found)["resourceVersion"]
        place.patch(CONTROLLER_INSTALLATIONS, place.name, {"status": {"providerStatus": {"a": "b"}}}, status=True)
        unhealthy = {"status": {"conditions": _conditions(Healthy="False")}}
        place.patch(CONTROLLER_INSTALLATIONS, place.name, unhealthy, status=True)
        found = await says(client, seed, kind, "Progressing", "NotAllExtensionsHealthy")
        assert metadata(found)["resourceVersion"] != version
        assert at(found, "status", "phase") == "NotReady"
        place.delete(CONTROLLER_INSTALLATIONS, place.name)
        await says(client, seed, kind, "True", "AllExtensionsReady")


def _conditions(**status: str) -> list[Object]:
    time = "2026-01-01T00:00:00Z"
    reported = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False", **status}
    common = {"reason": "R", "message": "m", "lastTransitionTime": time, "lastUpdateTime": time}
    return [{"type": kind, "status": each, **common} for kind, each in reported.items()]
