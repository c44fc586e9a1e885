"""What the scheduler does, as scenes of `kit.crash.sweep`, each in a Project of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from devcluster.cluster import Cluster
from kit.crash.sweep import Scene, crossing, scenes_of
from kit.garden import Garden
from kit.garden_scheduler import reported, run_scheduler, seed_of, set_room, usable_seed
from kit.garden_shoots import ShootPlace
from kube.runtime.client import Client


class ShootIsScheduled(Scene):
    """It was reported first that there is no room."""

    crosses = crossing("patch shoots.core.gardener.cloud shoots/status.core.gardener.cloud")
    warm = True

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.place = ShootPlace(Garden(cluster))
        self.mark, self.namespace = self.place.name, self.place.namespace
        self.has_room = False

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        async with run_scheduler(client, self.namespace) as loop:
            yield lambda: loop.queue.is_idle

    async def prepare(self) -> None:
        self.seed = usable_seed(self.place, room=0)
        self.place.shoot()

    async def change(self) -> None:
        set_room(self.place, self.seed, 1)
        self.has_room = True

    async def problem(self) -> str:
        if not self.has_room:
            return "" if reported(self.place) else "it is not reported that there is no room"
        return "" if seed_of(self.place) and not reported(self.place) else "it is not scheduled"

    async def state(self) -> Any:
        return seed_of(self.place).replace(self.mark, "$MARK"), reported(self.place)

    async def clean_up(self) -> None:
        self.place.remove()


SCENES = scenes_of(__name__)
