"""Shoots go to sleep and wake up by their schedules."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import pytest

from agent.controller_manager.shoot.hibernation import declare
from gardener.api.garden import SHOOTS
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller, until_idle
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Object
from kube.paths import at
from kube.resources import EVENTS
from kube.runtime.client import Client, Selection
from kube.runtime.loop import ControlLoop

pytestmark = pytest.mark.timeout(600)

EVENING = datetime(2100, 1, 5, 20, 30, tzinfo=UTC)
"""Later than whatever a test creates."""
NIGHTS: Object = {"schedules": [{"start": "0 20 * * *", "end": "0 6 * * *"}]}
IMPOSSIBLE: Object = {
    "type": "HibernationPossible",
    "status": "False",
    "reason": "ProblematicWebhooks",
    "message": "a webhook is in the way",
    "lastTransitionTime": "2024-01-01T00:00:00Z",
    "lastUpdateTime": "2024-01-01T00:00:00Z",
}


@pytest.fixture
async def client(garden: Garden) -> AsyncIterator[Client]:
    async with connected(garden.cluster) as client:
        yield client


class Watched:
    """The Shoot `s`."""

    def __init__(self, garden: Garden, client: Client) -> None:
        self.place, self.client = ShootPlace(garden), client
        self.now = EVENING

    def create(self, hibernation: Object) -> None:
        self.place.shoot("s", hibernation=hibernation)

    def running(self) -> AbstractAsyncContextManager[ControlLoop]:
        return run_garden_controller(declare, self.client, self.place.namespace, clock=lambda: self.now)

    def get(self) -> Object:
        return self.place.get(SHOOTS, "s")

    def set_constraint(self, constraint: Object) -> None:
        self.place.patch(SHOOTS, "s", {"status": {"constraints": [constraint]}}, status=True)

    def is_done(self, *, hibernates: bool) -> Callable[[], bool]:
        def done() -> bool:
            shoot, triggered = self.get(), at(self.get(), "status", "lastHibernationTriggerTime")
            return (
                at(shoot, "spec", "hibernation", "enabled") is hibernates
                and triggered == f"{self.now:%Y-%m-%dT%H:%M:%SZ}"
            )

        return done

    async def events(self, *, reasons: Sequence[str]) -> list[str]:
        """The Events of these reasons, once there are as many."""

        async def find() -> list[str]:
            found = await self.client.list(EVENTS, Selection(self.place.namespace))
            return [
                f"{each['type']} {each['reason']}: {each['message']}" for each in found if each["reason"] in reasons
            ]

        await soon(find, f"Events {reasons}")
        return sorted(await find())


async def test_a_shoot_sleeps_at_night_and_is_woken_up_once(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    shoot.create(NIGHTS)
    async with shoot.running() as loop:
        await soon(shoot.is_done(hibernates=True), "the Shoot to go to sleep")
        assert await shoot.events(reasons=["Hibernated"]) == ["Normal Hibernated: Hibernating cluster due to schedule"]

        shoot.now = EVENING + timedelta(hours=10)
        loop.queue.add(shoot.place.key("s"))
        await soon(shoot.is_done(hibernates=False), "the Shoot to wake up")
        assert await shoot.events(reasons=["WokenUp"]) == ["Normal WokenUp: Waking up cluster due to schedule"]

        # Put to sleep by hand, it is left alone until the schedule has something new to report.
        version = shoot.place.patch(SHOOTS, "s", {"spec": {"hibernation": {"enabled": True}}})["metadata"]
        loop.queue.add(shoot.place.key("s"))
        await until_idle(loop)
        assert shoot.get()["metadata"]["resourceVersion"] == version["resourceVersion"]


async def test_what_is_refused_is_reported_and_done_when_it_is_possible(garden: Garden, client: Client) -> None:
    shoot = Watched(garden, client)
    shoot.create(NIGHTS)
    shoot.set_constraint(IMPOSSIBLE)
    async with shoot.running():
        (refusal,) = await shoot.events(reasons=["HibernationFailed"])
        assert refusal.startswith("Warning HibernationFailed: Hibernating cluster due to schedule was refused: ")
        assert "admission webhook" not in refusal
        assert "a webhook is in the way" in refusal
        assert "lastHibernationTriggerTime" not in shoot.get()["status"]

        shoot.set_constraint(IMPOSSIBLE | {"status": "True"})
        await soon(shoot.is_done(hibernates=True), "the Shoot to go to sleep")
        assert await shoot.events(reasons=["Hibernated"]) == ["Normal Hibernated: Hibernating cluster due to schedule"]
