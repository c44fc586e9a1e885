"""What the controller manager does with ManagedSeedSets, while a user plays the gardenlets."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from agent.controller_manager.managed_seed_set.controller import declare
from config.controller_manager.controllers import Controllers, ManagedSeedSet
from devcluster.cluster import Cluster
from gardener.api.garden import MANAGED_SEED_SETS, MANAGED_SEEDS, SEEDS, SHOOTS
from kit.background import beside
from kit.crash.garden_scene import GardenScene
from kit.crash.sweep import comparable, crossing, scenes_of
from kit.garden import CONFIRMED, Garden
from kit.garden_seed_sets import SeedSetPlace
from kube.objects import Key, Object, integer, mapping, metadata
from kube.resources import CONTROLLER_REVISIONS, Resource
from kube.runtime.client import Client, Selection

_SHOOTS, _OF_SEEDS = "shoots.core.gardener.cloud", "seedmanagement.gardener.cloud"


class SeedSetScene(GardenScene):
    """The templates name the Seed of the Shoots, for which it takes a right of its own.

    A replica whose number was noted when the process died is never made: the next one has the next number.
    """

    declare = (declare,)
    spare = 6
    """The status reports what is waited for, if anybody looks before it has come."""
    settings = Controllers(managed_seed_set=ManagedSeedSet(sync_period=3600.0))

    def __init__(self, cluster: Cluster, admin: Client) -> None:
        super().__init__(cluster, admin)
        self.place = SeedSetPlace(Garden(cluster), admin)
        self.mark, self.namespace = self.place.name, self.place.base.namespace

    def make(self, replicas: int, *, limit: int = 1) -> None:
        """Args: limit: of former templates."""
        seed = self.place.base.seed()
        # Without a window, the webhooks choose one.
        window = {"timeWindow": {"begin": "010000+0000", "end": "020000+0000"}}
        shoot: Object = {"seedName": seed, "maintenance": window}
        rolling: Object = {"updateStrategy": {"rollingUpdate": {}}}
        self.place.make(replicas, shoot_spec=shoot, revisionHistoryLimit=limit, **rolling)

    def lacks(self, replicas: int) -> str:
        """What is not as it is to be when all is done for a set of so many replicas."""
        seed_set = self.place.base.get(MANAGED_SEED_SETS, self.mark)
        status = mapping(seed_set.get("status"))
        is_current = status.get("observedGeneration") == metadata(seed_set)["generation"]
        if is_current and self.place.is_ready(replicas) and integer(status.get("updatedReplicas")) == replicas:
            return ""
        return f"it waits for {self.place.waits()}"

    @asynccontextmanager
    async def at_work(self, client: Client) -> AsyncIterator[Callable[[], bool]]:
        async with beside(self._gardenlets()), super().at_work(client) as is_idle:
            yield is_idle

    async def _gardenlets(self) -> None:
        while True:
            await self.place.gardenlets.work()
            await asyncio.sleep(0.1)

    async def of_set(self, resource: Resource) -> list[Object]:
        return await self.client.list(resource, Selection(self.namespace, f"set={self.mark}"))

    async def state(self) -> Any:
        """Without numbers, and without the hashes of templates."""
        seed_set = await self.client.find(MANAGED_SEED_SETS, Key(self.namespace, self.mark))
        found = [seed_set] if seed_set is not None else []
        if seed_set is not None:
            following = integer(seed_set["status"].pop("nextReplicaNumber", 0))
            assert following == max(await self.place.numbers(), default=-1) + 1
        for resource in (SHOOTS, MANAGED_SEEDS):
            found += await self.of_set(resource)
        text = orjson.dumps([comparable(each, self.mark) for each in found]).decode()
        numbers = sorted(each["revision"] for each in await self.of_set(CONTROLLER_REVISIONS))
        return orjson.loads(re.sub(r"\$MARK-\w+", "$NAME", text)), numbers

    async def clean_up(self) -> None:
        for resource in (MANAGED_SEEDS, SHOOTS):
            for each in await self.of_set(resource):
                name = metadata(each)["name"]
                released = {**CONFIRMED["metadata"], "finalizers": None}
                await self.patch(resource, name, {"metadata": released})
                await self.remove(resource, name)
                await self.remove(SEEDS, name)
        self.place.base.remove()


class SeedSetGrows(SeedSetScene):
    crosses = crossing(
        "create controllerrevisions.apps",
        f"create {_SHOOTS} managedseeds.{_OF_SEEDS}",
        f"patch managedseedsets/status.{_OF_SEEDS}",
    )

    async def prepare(self) -> None:
        self.make(1)

    async def problem(self) -> str:
        return self.lacks(1)


class SeedSetIsUpdated(SeedSetScene):
    """It keeps no former templates."""

    crosses = crossing("delete controllerrevisions.apps", f"update {_SHOOTS} managedseeds.{_OF_SEEDS}")
    warm = True

    async def prepare(self) -> None:
        self.make(1, limit=0)

    async def change(self) -> None:
        self.place.change(shootTemplate=self.place.with_workers(3))

    async def problem(self) -> str:
        count = len(await self.of_set(CONTROLLER_REVISIONS))
        return self.lacks(1) or (f"there are {count} revisions" if count != 1 else "")


class SeedSetGoesBack(SeedSetScene):
    """To former templates, which it still has."""

    crosses = crossing("patch controllerrevisions.apps")
    warm = True
    is_changed = False

    async def prepare(self) -> None:
        self.make(0, limit=1)

    async def change(self) -> None:
        self.place.change(shootTemplate=self.place.with_workers(2))

    async def problem(self) -> str:
        lacks = self.lacks(0)
        if not lacks and not self.is_changed:
            self.is_changed = True
            self.place.change(shootTemplate=self.place.with_workers(3))
            return "it is not changed yet"
        return lacks


class SeedSetEnds(SeedSetScene):
    crosses = crossing(
        f"delete managedseeds.{_OF_SEEDS} {_SHOOTS}",
        f"patch {_SHOOTS} managedseedsets.{_OF_SEEDS} seeds.core.gardener.cloud",
    )
    warm = True
    is_deleted = False

    async def prepare(self) -> None:
        self.make(1)

    async def change(self) -> None:
        self.is_deleted = True
        self.place.base.delete(MANAGED_SEED_SETS, self.mark)

    async def problem(self) -> str:
        if not self.is_deleted:
            return self.lacks(1)
        return "it is still there" if self.place.base.find(MANAGED_SEED_SETS, self.mark) else ""

    async def state(self) -> Any:
        return [len(await self.of_set(resource)) for resource in (SHOOTS, MANAGED_SEEDS)]


SCENES = scenes_of(__name__)
