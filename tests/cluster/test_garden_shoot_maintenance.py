"""Shoots are maintained in their time windows, and when a user requests it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from agent.controller_manager.shoot.maintenance import declare
from config.controller_manager.controllers import Controllers
from gardener.api.garden import CLOUD_PROFILES, CREDENTIALS_BINDINGS, SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller, until_idle
from kit.garden_objects import garden_object
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.errors import Forbidden, Invalid
from kube.objects import Key, Object, annotations
from kube.paths import at
from kube.resources import EVENTS, Resource
from kube.runtime.client import Client, Selection
from kube.runtime.loop import ControlLoop
from kube.write_mode import WriteMode

pytestmark = pytest.mark.timeout(600)

NOON = datetime(2100, 1, 5, 12, tzinfo=UTC)
NOW_OPEN = {"begin": "110000+0000", "end": "140000+0000"}
CLOSED = {"begin": "200000+0000", "end": "210000+0000"}
OPERATION, TASKS = "gardener.cloud/operation", "shoot.gardener.cloud/tasks"
MAINTAIN: Object = {"metadata": {"annotations": {OPERATION: "maintain"}}}
EXPIRED = "2024-01-01T00:00:00Z"
RECONCILED: Object = {
    "status": {
        "lastOperation": {
            "type": "Reconcile",
            "state": "Succeeded",
            "progress": 100,
            "description": "d",
            "lastUpdateTime": EXPIRED,
        }
    }
}
AUTOMATIC = (
    'Control Plane: Updated Kubernetes version from "1.30.1" to "1.30.4". Reason: Automatic update of Kubernetes '
    "version configured"
)


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


class Watched:
    """The Shoot `s`, and the profile that it is of."""

    def __init__(self, garden: Garden, client: Client) -> None:
        self.place, self.client = ShootPlace(garden), client
        self.now = NOON
        self.offer("1.30.1", "1.30.4")

    def offer(self, *versions: str, expired: str = "") -> None:
        listed = [{"version": each, **({"expirationDate": EXPIRED} if each == expired else {})} for each in versions]
        self.place.patch(CLOUD_PROFILES, self.place.name, {"spec": {"kubernetes": {"versions": listed}}})

    def create(self, *, window: Object = CLOSED, auto: bool = True, **spec: Any) -> None:
        wanted = {"kubernetesVersion": auto, "machineImageVersion": False}
        self.place.shoot("s", maintenance={"autoUpdate": wanted, "timeWindow": window}, **spec)
        self.place.patch(SHOOTS, "s", RECONCILED, status=True)

    def running(
        self,
        *,
        clock: Callable[[], datetime] | None = None,
        uniform: Callable[[float, float], float] = max,
        dry_run: bool = False,
    ) -> AbstractAsyncContextManager[ControlLoop]:
        return run_garden_controller(
            partial(declare, uniform=uniform),
            self.client,
            controllers=Controllers(dry_run=dry_run),
            clock=clock or (lambda: self.now),
        )

    def get(self) -> Object:
        return self.place.get(SHOOTS, "s")

    def version(self) -> str:
        found: str = at(self.get(), "spec", "kubernetes", "version")
        return found

    def last(self) -> Object:
        found: Object = at(self.get(), "status", "lastMaintenance") or {}
        return found

    def ask(self) -> None:
        self.place.patch(SHOOTS, "s", MAINTAIN)

    async def done(self, state: str = "Succeeded") -> None:
        def is_done() -> bool:
            return self.last().get("state") == state and annotations(self.get()).get(OPERATION) != "maintain"

        await soon(is_done, f"the maintenance to end as {state}", state=lambda: str(self.get()))

    async def events(self) -> list[str]:
        found = await self.client.list(EVENTS, Selection(self.place.namespace))
        return sorted(f"{each['type']} {each['reason']}: {each['message']}" for each in found)


async def test_a_shoot_is_maintained_when_a_user_requests_it(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    shoot.create()
    async with shoot.running() as loop:
        await until_idle(loop)
        assert shoot.version() == "1.30.1"
        shoot.ask()
        await shoot.done()
        assert shoot.version() == "1.30.4"
        assert shoot.last() == {
            "description": f"All maintenance operations successful. {AUTOMATIC}",
            "state": "Succeeded",
            "triggeredTime": "2100-01-05T12:00:00Z",
        }
        assert set(annotations(shoot.get())[TASKS].split(",")) >= {"deployInfrastructure", "restartControlPlanePods"}
        await soon(shoot.events, "the Event")
        assert await shoot.events() == [f"Normal KubernetesVersionMaintenance: {AUTOMATIC}."]

        # Again: there is nothing to change, so it is only reconciled.
        before = shoot.get()
        shoot.ask()
        await soon(lambda: OPERATION not in annotations(shoot.get()), "the operation to be gone")
        await until_idle(loop)
        assert shoot.last() == before["status"]["lastMaintenance"]
        assert shoot.get()["metadata"]["generation"] == before["metadata"]["generation"] + 1
        assert len(await shoot.events()) == 1


async def test_a_shoot_is_maintained_in_its_window_once(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    async with shoot.running() as loop:
        shoot.create(window=NOW_OPEN)
        await shoot.done()
        assert shoot.version() == "1.30.4"
        for moment in (NOON + timedelta(hours=1), NOON + timedelta(hours=8)):
            shoot.now = moment
            version = shoot.get()["metadata"]["resourceVersion"]
            loop.queue.add(shoot.place.key("s"))
            await until_idle(loop)
            assert shoot.get()["metadata"]["resourceVersion"] == version
        # It is open when it is moved to the present time: there is nothing to change, but it is reconciled.
        window = {"begin": "193000+0000", "end": "213000+0000"}
        moved = shoot.place.patch(SHOOTS, "s", {"spec": {"maintenance": {"timeWindow": window}}})["metadata"]
        await soon(lambda: shoot.get()["metadata"]["generation"] == moved["generation"] + 1, "the reconciliation")


async def test_what_the_api_server_refuses_is_not_tried_again(garden: Garden, client: Client) -> None:
    """A rotation that was planned for the maintenance has been completed meanwhile."""
    shoot = Watched(garden, client)
    shoot.create(auto=False)
    planned = "maintenance.gardener.cloud/operation"

    def rotation(phase: str) -> None:
        status = {"credentials": {"rotation": {"certificateAuthorities": {"phase": phase}}}}
        shoot.place.patch(SHOOTS, "s", {"status": status}, status=True)

    rotation("Prepared")
    shoot.place.patch(SHOOTS, "s", {"metadata": {"annotations": {planned: "rotate-ca-complete"}}})
    rotation("Completed")
    async with shoot.running() as loop:
        await until_idle(loop)
        shoot.ask()
        await shoot.done("Failed")
        last = shoot.last()
        assert last["description"] == "Maintenance failed"
        assert last["failureReason"].startswith("Updates to the Shoot failed to be applied: ")
        assert "all credentials of rotate-ca-complete must be in phase Prepared" in last["failureReason"]
        assert annotations(shoot.get())[planned] == "rotate-ca-complete"
        assert OPERATION not in annotations(shoot.get())
        assert await shoot.events() == []

        shoot.place.patch(SHOOTS, "s", {"metadata": {"annotations": {planned: None}}})
        shoot.ask()
        await shoot.done()
        assert shoot.last()["description"] == "Maintenance succeeded"
        assert "failureReason" not in shoot.last()


async def test_kubernetes_pools_and_images_are_updated_in_one_write(garden: Garden, client: Client) -> None:
    """No image works with both versions; and a pool that stays would be too far behind."""
    shoot = Watched(garden, client)
    name = shoot.place.name
    images = [
        {"version": "1.0.0", "kubeletVersionConstraint": "< 1.32"},
        {"version": "2.0.0", "kubeletVersionConstraint": ">= 1.32"},
    ]
    profile = {"spec": {"machineImages": [{"name": name, "updateStrategy": "major", "versions": images}]}}
    shoot.place.patch(CLOUD_PROFILES, name, profile)
    versions = ("1.28.2", "1.29.4", "1.31.3", "1.32.0")
    shoot.offer(*versions)
    first = garden_object(SHOOTS)["spec"]["provider"]["workers"][0]
    first["machine"]["image"] = {"name": name, "version": "1.0.0"}
    second = {**first, "name": "behind", "kubernetes": {"version": "1.28.2"}}
    provider = {"type": name, "workers": [first, second]}
    shoot.create(auto=False, kubernetes={"version": "1.31.3"}, provider=provider)
    shoot.offer(*versions, expired="1.31.3")
    async with shoot.running() as loop:
        await until_idle(loop)
        before = shoot.get()["metadata"]["generation"]
        shoot.ask()
        await shoot.done()
        found = shoot.get()
        assert found["metadata"]["generation"] == before + 1
        assert shoot.version() == "1.32.0"
        pools = found["spec"]["provider"]["workers"]
        assert [each["machine"]["image"]["version"] for each in pools] == ["2.0.0", "1.0.0"]
        assert pools[1]["kubernetes"]["version"] == "1.29.4"
        assert "failureReason" not in shoot.last()


@pytest.mark.parametrize(
    ("old", "new", "kubernetes", "removed"),
    [
        (
            "1.32.1",
            "1.33.0",
            {
                "kubeControllerManager": {"podEvictionTimeout": "2m"},
                "clusterAutoscaler": {"maxEmptyBulkDelete": 5},
            },
            ["kubeControllerManager.podEvictionTimeout", "clusterAutoscaler.maxEmptyBulkDelete"],
        ),
        (
            "1.34.1",
            "1.35.0",
            {
                "kubeAPIServer": {"enableAnonymousAuthentication": True, "watchCacheSizes": {"default": 100}},
                "kubeScheduler": {"kubeMaxPDVols": "20"},
            },
            [
                "kubeAPIServer.enableAnonymousAuthentication",
                "kubeAPIServer.watchCacheSizes.default",
                "kubeScheduler.kubeMaxPDVols",
            ],
        ),
    ],
)
async def test_settings_that_the_new_version_forbids_are_gone(
    garden: Garden, client: Client, old: str, new: str, kubernetes: Object, removed: list[str]
) -> None:
    shoot = Watched(garden, client)
    shoot.offer(old, new)
    shoot.create(auto=False, kubernetes={"version": old, **kubernetes})
    shoot.offer(old, new, expired=old)
    async with shoot.running():
        shoot.ask()
        await shoot.done()
    found = shoot.get()["spec"]
    assert found["kubernetes"]["version"] == new
    for path in removed:
        assert at(found, "kubernetes", *path.split(".")) is None
        assert f"Removed spec.kubernetes.{path}. Reason: " in shoot.last()["description"]


async def test_a_credentials_binding_takes_the_place_of_a_secret_binding(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    shoot.offer("1.33.1", "1.34.0")
    shoot.create(auto=False, kubernetes={"version": "1.33.1"})
    shoot.offer("1.33.1", "1.34.0", expired="1.33.1")
    async with shoot.running():
        shoot.ask()
        await shoot.done()
    name, found = f"force-migrated-{shoot.place.name}", shoot.get()["spec"]
    assert found["kubernetes"]["version"] == "1.34.0"
    assert (found.get("secretBindingName"), found["credentialsBindingName"]) == (None, name)
    assert (found.get("cloudProfileName"), found["cloudProfile"]["name"]) == (None, shoot.place.name)
    binding = await client.get(CREDENTIALS_BINDINGS, Key(shoot.place.namespace, name))
    secret = {"name": shoot.place.name, "namespace": shoot.place.namespace}
    assert binding["credentialsRef"] == {"apiVersion": "v1", "kind": "Secret", **secret}
    assert f'credentialsBindingName has its place: "{name}"' in shoot.last()["description"]


async def test_a_shoot_that_changes_meanwhile_is_planned_again(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    shoot.create()
    shoot.ask()
    writes = iter(("a", "b"))

    def clock() -> datetime:
        """Another client writes while a pass has begun with what it knows."""
        for mark in writes:
            shoot.place.patch(SHOOTS, "s", {"metadata": {"annotations": {"mark": mark}}})
            break
        return NOON

    async with shoot.running(clock=clock):
        await shoot.done()
        assert shoot.version() == "1.30.4"
        assert annotations(shoot.get())["mark"] in {"a", "b"}


class Interrupted(Client):
    """Another client writes to the Shoot right after it was changed, but for dry runs."""

    place: ShootPlace

    async def replace(self, resource: Resource, obj: Object, **options: Any) -> Object:
        written = await super().replace(resource, obj, **options)
        if "mode" not in options:
            mark = {"metadata": {"annotations": {"mark": str(uuid4())}}}
            await asyncio.to_thread(self.place.patch, SHOOTS, "s", mark)
        return written


async def test_the_end_is_reported_of_a_shoot_that_changes_meanwhile(garden: Garden, client: Client) -> None:
    interrupted = Interrupted(client.transport, user_agent="interrupted")
    shoot = Watched(garden, interrupted)
    interrupted.place = shoot.place
    shoot.create()
    async with shoot.running():
        shoot.ask()
        await shoot.done()
        assert shoot.version() == "1.30.4"

        # What is found failed has been corrected, too, by a pass without changes.
        failed = {"state": "Failed", "description": "d", "failureReason": "r", "triggeredTime": EXPIRED}
        shoot.place.patch(SHOOTS, "s", {"status": {"lastMaintenance": failed}}, status=True)
        shoot.ask()
        await shoot.done()
        assert shoot.last()["description"] == "Maintenance succeeded"


class Overtaken(Client):
    """What is about to be written is not offered any more; a dry run was queried about it before."""

    shoot: Watched

    async def replace(self, resource: Resource, obj: Object, **options: Any) -> Object:
        if "mode" not in options:
            await asyncio.to_thread(self.shoot.offer, "1.30.1")

            async def is_refused() -> bool:
                try:
                    await super(Overtaken, self).replace(resource, obj, mode=WriteMode(dry_run=True))
                except (Forbidden, Invalid):
                    return True
                return False

            await soon(is_refused, "the webhooks to know")
        return await super().replace(resource, obj, **options)


async def test_the_event_of_a_refused_write_does_not_name_the_webhook(garden: Garden, client: Client) -> None:
    overtaken = Overtaken(client.transport, user_agent="overtaken")
    overtaken.shoot = shoot = Watched(garden, overtaken)
    shoot.create()
    async with shoot.running():
        shoot.ask()

        async def failures() -> list[str]:
            return [event for event in await shoot.events() if event.startswith("Warning MaintenanceFailed: ")]

        await soon(failures, "the Event")
        assert all("1.30.4" in event and "admission webhook" not in event for event in await failures())


async def test_after_a_restart_in_the_window_passes_are_spread_over_the_rest_of_it(
    garden: Garden, client: Client
) -> None:
    shoot = Watched(garden, client)
    shoot.create(window=NOW_OPEN)
    requested: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        requested.append((low, high))
        return high

    async with shoot.running(uniform=uniform) as loop:
        # Others of this garden are listed, too.
        await soon(lambda: (0.0, 105 * 60.0) in requested, "the Shoot to be listed")
        await until_idle(loop)
        assert shoot.version() == "1.30.1"
    async with shoot.running(uniform=min):
        await shoot.done()


async def test_a_dry_run_changes_nothing(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    shoot.create()
    shoot.ask()
    version = shoot.get()["metadata"]["resourceVersion"]
    async with shoot.running(dry_run=True) as loop:
        loop.queue.add(shoot.place.key("s"))
        await until_idle(loop)
        assert shoot.get()["metadata"]["resourceVersion"] == version
