"""Control loops at work in a test's own process.

    cluster = cluster_of(client, namespace)
    context = context_of(cluster, Controllers(garbage_collector=GarbageCollector(enabled=True)))
    async with at_work(context, GarbageCollectorLoop(context)):
        ...

All that they had in memory ends with the block, as if the process had ended.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent.context import Context, ControlLoop
from agent.health.controller import HealthLoop, ProgressLoop
from agent.managed_resource.controller import ManagedResourceLoop
from config.schema import ResourceManagerConfiguration
from config.schema_controllers import Controllers
from kube.cache import Caches
from kube.client import Client
from kube.discovery import Discovery
from kube.events import EventRecorder
from kube.watch import Timings
from process.clusters import Cluster

_DRAIN_SECONDS = 30.0
_SHARING = (ManagedResourceLoop, HealthLoop, ProgressLoop)
"""They use stores that are not theirs alone."""


def cluster_of(client: Client, *namespaces: str, timings: Timings | None = None) -> Cluster:
    """A cluster of which control loops see these namespaces; none: all."""
    return Cluster(
        transport=client.transport,
        client=client,
        caches=Caches(client, namespaces=namespaces, timings=timings),
        discovery=Discovery(client),
        namespaces=namespaces,
    )


def context_of(cluster: Cluster, controllers: Controllers, *, source: Cluster | None = None) -> Context:
    """Args: cluster: the target; it is the source as well unless there is another one."""
    recorder = EventRecorder(cluster.client, component="test")
    return Context(
        config=ResourceManagerConfiguration(controllers=controllers),
        source=source or cluster,
        target=cluster,
        recorder=recorder,
        target_recorder=recorder,
        cluster_id="",
    )


@asynccontextmanager
async def at_work(context: Context, *loops: ControlLoop) -> AsyncIterator[None]:
    """Runs control loops and writes their events; at the end of the block those, too, that are still to be written."""
    tasks = [asyncio.create_task(context.recorder.run())]
    try:
        for loop in loops:
            await loop.start()
        tasks += [asyncio.create_task(loop.controller.run()) for loop in loops]
        yield
        await context.recorder.drain(_DRAIN_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for loop in loops:
            await loop.close()
        all_caches = {context.source.caches, context.target.caches}
        if not any(isinstance(loop, _SHARING) for loop in loops):
            assert [store.view for caches in all_caches for store in caches.stores()] == []
        for caches in all_caches:
            await caches.close()
