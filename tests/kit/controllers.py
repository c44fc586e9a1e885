"""Controllers at work in a test's own process.

    controllers = Controllers(garbage_collector=GarbageCollector(enabled=True))
    async with run_controller(garbage_collector.declare, client, namespace, controllers=controllers) as loop:
        ...

All that they had in memory ends with the block, as if the process had ended. For whole processes there is
`kit.processes.agent`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from prometheus_client import REGISTRY

from agent.resource_manager.context import Context
from agent.resource_manager.health.evaluation import rules_of
from config.resource_manager.controllers import Controllers
from config.resource_manager.schema import ResourceManagerConfiguration
from kube.clock import utc_now
from kube.resources import Resource
from kube.runtime.cache import Caches, Store, View
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.events import EventRecorder
from kube.runtime.loop import ControlLoop
from kube.runtime.transport import Transport
from kube.runtime.watch import ListEnds, Timings
from process.clusters import Cluster

_DRAIN_SECONDS = 30.0
_SHARING = {"managedresource", "health", "health-progressing"}
"""They use stores that are not theirs alone."""


class Behind(Caches):
    """The watches of some kinds hang, after a first list from before all that there is. Args: kinds: their kinds."""

    def __init__(self, client: Client, *kinds: Resource, namespaces: Sequence[str] = ()) -> None:
        super().__init__(client, namespaces=namespaces)
        self._kinds = kinds

    def acquire(self, view: View[Any], *, needed_at_start: bool = False) -> Store[Any]:
        if view.resource not in self._kinds:
            return super().acquire(view, needed_at_start=needed_at_start)
        store = Store(view)
        store.source("").apply(ListEnds(1))
        return store

    async def release(self, view: View[Any]) -> None:
        if view.resource not in self._kinds:
            await super().release(view)


def cluster_of(
    client: Client, *namespaces: str, timings: Timings | None = None, behind: Sequence[Resource] = ()
) -> Cluster:
    """A cluster of which control loops see these namespaces; none: all. Args: behind: kinds whose watches hang."""
    clocks = client.transport.clock if isinstance(client.transport, Transport) else None
    return Cluster(
        transport=client.transport,
        client=client,
        caches=Behind(client, *behind, namespaces=namespaces)
        if behind
        else Caches(client, namespaces=namespaces, timings=timings),
        discovery=Discovery(client),
        namespaces=namespaces,
        clock=clocks or utc_now,
        deletion_clock=clocks.earliest if clocks else utc_now,
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
        health_rules=rules_of(controllers.health),
    )


@asynccontextmanager
async def run_controller(
    declare: Callable[[Context], ControlLoop],
    client: Client,
    *namespaces: str,
    controllers: Controllers | None = None,
    source: Client | None = None,
    timings: Timings | None = None,
    behind: Sequence[Resource] = (),
) -> AsyncIterator[ControlLoop]:
    """One controller at work, which sees these namespaces, or all; the source is the target unless it is given."""
    cluster = cluster_of(client, *namespaces, timings=timings, behind=behind)
    context = context_of(cluster, controllers or Controllers(), source=cluster_of(source) if source else None)
    loop = declare(context)
    async with at_work(context, loop):
        yield loop


def at_work(
    context: Context, *loops: ControlLoop, release_shared: Callable[[], Awaitable[None]] | None = None
) -> AbstractAsyncContextManager[None]:
    """Control loops of the resource manager at work; see `loops_at_work`."""
    all_caches = {context.source.caches, context.target.caches}
    return loops_at_work(context.recorder, all_caches, *loops, release_shared=release_shared)


@asynccontextmanager
async def loops_at_work(
    recorder: EventRecorder,
    all_caches: Collection[Caches],
    *loops: ControlLoop,
    release_shared: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[None]:
    """Runs control loops and writes their events; at the end of the block those, too, that are still to be written.

    `release_shared` gives back what the loops use and is not theirs alone.
    """
    tasks = [asyncio.create_task(recorder.run())]
    try:
        for loop in loops:
            await loop.start()
        tasks += [asyncio.create_task(loop.controller.run()) for loop in loops]
        yield
        await recorder.drain(_DRAIN_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for loop in loops:
            await loop.close()
        if release_shared:
            await release_shared()
        if release_shared or _SHARING.isdisjoint(loop.controller.name for loop in loops):
            assert [store.view for caches in all_caches for store in caches.stores()] == []
        for caches in all_caches:
            await caches.close()


def counted(metric: str, **labels: str) -> float:
    """The value of a series in this process; 0 while there is none."""
    return REGISTRY.get_sample_value(metric, labels) or 0.0
