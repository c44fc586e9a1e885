"""A gardenlet, or the extension that it queries, ends at each of its writes in the life of an extension object.

The life: it is made, moved away, recreated from the state that was left, changed, and deleted. A process that ends starts
again from the top of what it was at.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import pytest

from agent.gardenlet.common.extension_objects.kinds import INFRASTRUCTURE
from agent.gardenlet.common.extension_objects.objects import ExtensionObjects
from agent.gardenlet.common.shoot_states.rules.contents import Left
from devcluster.cluster import Cluster
from devcluster.testing.pytest_plugin import RunClusters
from extension.controller import declare
from kit.controllers import cluster_of, loops_at_work
from kit.crash.sweep import FULL, Moment
from kit.seed_kinds import install_seed_kinds
from kit.world import connected
from kube.clock import utc_now
from kube.objects import Key, Object, finalizers
from kube.paths import at
from kube.resources import NAMESPACES
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.runtime.waiting import Waiting
from localprovider.extensions.actuators import Infrastructure
from localprovider.extensions.state import State

pytestmark = pytest.mark.timeout(600)

AT_ONCE = 12


@pytest.fixture(scope="module")
def seed(devcluster_run: RunClusters) -> Iterator[Cluster]:
    """Of this file alone: other tests have a local provider that answers in all namespaces."""
    with Cluster() as cluster:
        install_seed_kinds(cluster)
        yield cluster


class MortalClient(Client):
    """Hears nothing from its end on, and is heard no more."""

    def begin(self, moment: Moment | None) -> Self:
        self.moment, self.writes, self.is_over = moment, 0, asyncio.Event()
        return self

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method not in {"POST", "PUT", "PATCH", "DELETE"} or path.endswith("/events"):
            return await super().request(method, path, **options)
        self.writes += 1
        if self.moment is not None and self.writes >= self.moment.number:
            if self.moment.carried_out and self.writes == self.moment.number:
                await super().request(method, path, **options)
            self.is_over.set()
            await asyncio.Event().wait()
        return await super().request(method, path, **options)


@asynccontextmanager
async def client_of(cluster: Cluster, moment: Moment | None) -> AsyncIterator[MortalClient]:
    async with connected(cluster) as alive:
        yield MortalClient(alive.transport, user_agent="mortal").begin(moment)


Work = Callable[[MortalClient], Awaitable[None]]


async def repeated(cluster: Cluster, moment: Moment | None, work: Work) -> int:
    """Work until it is done, from the top if its client ends; how many writes the first life had."""
    async with client_of(cluster, moment) as client:
        task, over = (asyncio.ensure_future(each) for each in (work(client), client.is_over.wait()))
        await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if task.done():
            task.result()
            return client.writes
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    async with client_of(cluster, None) as client:
        await work(client)
    return 0


class Life:
    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster, self.state = cluster, State(directory)
        self.name = Key(f"shoot--p--{uuid.uuid4().hex[:8]}", "a")
        self.phases = [self.make, self.move_away, self.delete_moved, self.restore, self.change, self.delete]

    async def play(self, *, gardenlet: Moment | None = None, provider: Moment | None = None) -> tuple[int, int]:
        """How many writes each side needed, if it lived."""
        async with connected(self.cluster) as admin:
            meta = {"metadata": {"name": self.name.namespace}}
            await admin.create(NAMESPACES, {**NAMESPACES.type_meta, **meta})
        is_done = asyncio.Event()

        async def provide(client: MortalClient) -> None:
            seed = cluster_of(client, self.name.namespace)
            loop = declare(seed, Infrastructure(client, self.state), workers=2)
            async with loops_at_work(EventRecorder(client, component="test"), {seed.caches}, loop):
                await is_done.wait()

        async def flows() -> int:
            try:
                return await repeated(self.cluster, gardenlet, self._flow)
            finally:
                is_done.set()

        requested, answered = await asyncio.gather(flows(), repeated(self.cluster, provider, provide))
        return requested, answered

    async def _flow(self, client: MortalClient) -> None:
        """What has not been done; a phase that was begun is done from its top."""
        caches = Caches(client)
        waiting = Waiting(client=client, caches=caches, discovery=Discovery(client))
        objects = ExtensionObjects(client=client, waiting=waiting, clock=utc_now)
        try:
            while self.phases:
                await self.phases[0](objects)
                del self.phases[0]
        finally:
            await caches.close()

    def manifest(self, **config: Any) -> Object:
        secret = {"name": "s", "namespace": self.name.namespace}
        return {
            "metadata": {"name": self.name.name, "namespace": self.name.namespace},
            "spec": {"type": "local", "region": "r", "secretRef": secret, "providerConfig": config},
        }

    async def make(self, objects: ExtensionObjects) -> None:
        self.made = await objects.wait(await objects.deploy(INFRASTRUCTURE, self.manifest()))
        assert finalizers(self.made)

    async def move_away(self, objects: ExtensionObjects) -> None:
        requested = await objects.migrate(INFRASTRUCTURE, self.name)
        assert requested is not None
        await objects.wait_until_migrated(requested)

    async def delete_moved(self, objects: ExtensionObjects) -> None:
        await self.delete(objects, left=self.network)

    async def restore(self, objects: ExtensionObjects) -> None:
        requested = await objects.restore(INFRASTRUCTURE, self.manifest(), Left({"state": {"network": self.network}}))
        restored = await objects.wait(requested)
        assert at(restored, "status", "nodesCIDR") == at(self.made, "status", "nodesCIDR")

    async def change(self, objects: ExtensionObjects) -> None:
        changed = await objects.wait(await objects.deploy(INFRASTRUCTURE, self.manifest(changed=True)))
        assert at(changed, "status", "observedGeneration") == at(changed, "metadata", "generation")

    async def delete(self, objects: ExtensionObjects, left: int | None = None) -> None:
        await objects.delete(INFRASTRUCTURE, self.name)
        await objects.wait_until_gone(INFRASTRUCTURE, self.name)
        assert self.state.network_of(str(self.name)) == left

    @property
    def network(self) -> int:
        return int(at(self.made, "status", "state", "network"))


async def test_after_an_end_at_any_write_a_request_is_done_once_and_a_moved_object_is_kept(
    seed: Cluster, tmp_path: Path
) -> None:
    requested, answered = await Life(seed, tmp_path / "undisturbed").play()
    moments = [
        {side: Moment(number=number, carried_out=carried_out)}
        for side, writes in (("gardenlet", requested), ("provider", answered))
        for number in range(1, writes + 1)
        for carried_out in (False, True)
        if FULL or carried_out == bool(number % 2)
    ]
    assert len(moments) > 20
    places = asyncio.Semaphore(AT_ONCE)

    async def play(number: int, moment: dict[str, Moment]) -> None:
        async with places:
            try:
                await Life(seed, tmp_path / str(number)).play(**moment)
            except Exception as error:
                error.add_note(", ".join(f"the {side} ended {each}" for side, each in moment.items()))
                raise

    async with asyncio.TaskGroup() as group:
        for number, moment in enumerate(moments):
            group.create_task(play(number, moment))
