"""Events go when they are old, but for those of Shoots."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.controller_manager.event import declare
from config.controller_manager.controllers import Controllers, Event
from kit.eventually import soon
from kit.garden import Garden
from kit.garden_controllers import run_garden_controller
from kit.world import connected
from kube.clock import format_time
from kube.objects import Object
from kube.resources import EVENTS

pytestmark = pytest.mark.timeout(600)


async def test_events_that_are_not_about_shoots_are_deleted_an_hour_after_their_last_repeat(garden: Garden) -> None:
    namespace = f"garden-{garden.place()}"
    now = datetime.now(UTC)
    two_hours_ago = format_time(now - timedelta(hours=2))

    def event(name: str, kind: str, api_version: str, **times: str | None) -> None:
        involved = {"kind": kind, "apiVersion": api_version, "name": "x", "namespace": namespace}
        fields: Object = {"involvedObject": involved, "reason": "R", "message": "m", "type": "Normal", **times}
        garden.create(EVENTS, name, namespace=namespace, **fields)

    event("of-shoot", "Shoot", "core.gardener.cloud/v1beta1", lastTimestamp=two_hours_ago)
    event("of-seed", "Seed", "core.gardener.cloud/v1beta1", lastTimestamp=two_hours_ago)
    event("repeated", "Pod", "v1", firstTimestamp=two_hours_ago, lastTimestamp=format_time(now))
    event("ends-soon", "Pod", "v1", lastTimestamp=format_time(now - timedelta(minutes=59, seconds=59)))

    async with connected(garden.cluster) as client:

        async def names() -> set[str]:
            found: Object = await client.read(EVENTS.path(namespace=namespace))
            return {each["metadata"]["name"] for each in found["items"]}

        async def are_left(*expected: str) -> bool:
            return await names() == set(expected)

        async with run_garden_controller(declare, client, namespace, controllers=Controllers(event=Event())):
            await soon(lambda: are_left("of-shoot", "repeated"), "the old ones to go, one of them in a moment")
            event("new", "Pod", "v1", lastTimestamp=two_hours_ago)
            await soon(lambda: are_left("of-shoot", "repeated"), "the new one to go, which is old")
