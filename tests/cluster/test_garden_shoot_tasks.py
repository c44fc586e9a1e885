"""Tasks that an annotation of a Shoot requests, and others who write to the Shoot at the same time."""

from typing import Any

from agent.gardenlet.shoot.main.operation import forget_task
from gardener import keys
from gardener.api.garden import SHOOTS
from kit.garden import Garden
from kit.garden_shoots import ShootPlace
from kit.world import connected
from kube.objects import Key, Object, annotations
from kube.resources import Resource
from kube.runtime.client import Client


class Raced(Client):
    """Another client writes the status after each of the first reads. Attributes: left: how often."""

    left: int

    async def get(self, resource: Resource, name: Key | str, **options: Any) -> Object:
        found = await super().get(resource, name, **options)
        if self.left:
            self.left -= 1
            body: Object = {"status": {"hibernated": bool(self.left % 2)}}
            await self.patch(resource, name, body, subresource="status", **options)
        return found


async def test_other_writers_do_not_make_an_operation_fail(garden: Garden) -> None:
    place = ShootPlace(garden)
    place.shoot()
    place.patch(SHOOTS, "s", {"metadata": {"annotations": {keys.TASKS: "a,b"}}})
    shoot = place.get(SHOOTS, "s")
    async with connected(garden.cluster) as client:
        raced = Raced(client.transport, user_agent="test")
        raced.left = 9
        await forget_task(raced, shoot, "a")
    assert annotations(place.get(SHOOTS, "s"))[keys.TASKS] == "b"
