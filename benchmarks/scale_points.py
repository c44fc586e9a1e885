"""What the agent costs with so many things of a sort: each point with a control plane and an agent of its own.

All points have the same steps: everything comes into being, rest, a restart. A point that takes longer than it may is
marked as such, with how far it came.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from benchmarks import network_policies, nodes
from benchmarks.measuring import Meter, News, Phase, connected, running, start, writes
from benchmarks.network_policies import Policies, namespace, service
from benchmarks.observer import observing
from benchmarks.program import PATIENT_ELECTION, Agent
from benchmarks.workload import Workload, create_namespace, each_of
from devcluster.audit import Audit
from kube.resources import NAMESPACES, NODES, SERVICES
from kube.runtime.cache import View
from localprocesses.errors import LocalProcessError

_NAMESPACE = "benchmark"
_SECTIONS = {"leaderElection": PATIENT_ELECTION}
_CLIENTS = 5
"""Namespaces from which each Service is reached, besides its own."""
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Seconds: for everything to come into being, and of rest."""

    most: float
    rest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Times in seconds, memory in MiB."""

    count: int
    """Of what grows."""
    objects: int
    """Of all that is managed."""
    seconds: float
    calls: int
    cpu: float
    peak: float
    resident: float
    rest_cpu: float
    rest_calls: int
    ready: float
    looked_at: float
    """Until everything was looked at once after a restart."""
    restart_cpu: float
    restart_peak: float
    restart_writes: int


@dataclass(frozen=True, slots=True)
class Missed:
    """A point that was not reached."""

    count: int
    why: str


Measure = Callable[[int, Bounds], Awaitable[Point | Missed]]


def by_count(size: int) -> Measure:
    """So many ManagedResources of `size` objects."""
    return lambda count, bounds: _managed(count, count=count, size=size, bounds=bounds)


def by_size(count: int) -> Measure:
    """`count` ManagedResources of so many objects."""
    return lambda size, bounds: _managed(size, count=count, size=size, bounds=bounds)


async def _managed(grown: int, *, count: int, size: int, bounds: Bounds) -> Point | Missed:
    async with (
        running(sections=_SECTIONS) as (cluster, agent, audit),
        observing(cluster, _NAMESPACE, objects=False) as observer,
    ):
        await create_namespace(observer.client, _NAMESPACE)
        work = Workload(observer.client, namespace=_NAMESPACE, count=count, size=size)
        await work.create_secrets()

        def all_applied() -> bool:
            agent.check()
            return observer.applied(size) == count

        async def create() -> float:
            await work.create()
            return await observer.until(
                all_applied,
                what="all to be applied",
                within=bounds.most,
                pause=_LOOK_SECONDS,
                explain=lambda: f"; {observer.applied(size)} of {count} were",
            )

        return await _point(agent, audit, create, count=grown, objects=count * size, bounds=bounds, passes=count)


async def by_nodes(count: int, bounds: Bounds) -> Point | Missed:
    """So many Nodes that wait for the pods of three DaemonSets.

    The pods come with their Nodes: the DaemonSet controller would need all of the machine for thousands of Nodes.
    """
    async with (
        running(controllers=nodes.CONTROLLERS, sections=_SECTIONS) as (cluster, agent, audit),
        connected(cluster) as (client, caches),
    ):
        news, store = News(), caches.acquire(View(NODES, nodes.node_state))
        await store.synced.wait()
        store.subscribe(news.notify)
        await asyncio.to_thread(cluster.stop_controllers)
        components = await nodes.make_components(client)

        def free() -> int:
            return sum(not node.has_taint and node.delay is not None for _, node in store.items())

        async def join() -> float:
            await nodes.join(client, range(count), components=components)
            return await news.until(
                lambda: free() == count,
                what="all Nodes to be free",
                within=bounds.most,
                pause=_LOOK_SECONDS,
                explain=lambda: f"; {free()} of {count} were",
            )

        return await _point(agent, audit, join, count=count, objects=count, bounds=bounds, passes=0)


async def by_services(count: int, bounds: Bounds) -> Point | Missed:
    """So many Services in a tenth as many namespaces, with two policies for each of six namespaces."""
    spread = max(count // 10, _CLIENTS + 1)
    async with (
        running(controllers=network_policies.CONTROLLERS, sections=_SECTIONS) as (cluster, agent, audit),
        connected(cluster) as (client, caches),
    ):
        policies = Policies(caches)
        for number in range(spread):
            await client.create(NAMESPACES, namespace(f"scale-{number}", is_client=number < _CLIENTS))
        # A Service's own namespace is among those that it lets in by its own policies.
        wanted = sum(2 * (_CLIENTS + (number % spread >= _CLIENTS)) for number in range(count))

        async def create() -> float:
            await each_of(range(count), lambda i: client.create(SERVICES, service(f"s-{i}", f"scale-{i % spread}")))
            return await policies.are(wanted, within=bounds.most)

        return await _point(
            agent, audit, create, count=count, objects=wanted, bounds=bounds, passes=count, controller="networkpolicy"
        )


# --- what they share


async def _point(
    agent: Agent,
    audit: Audit,
    create: Callable[[], Awaitable[float]],
    *,
    count: int,
    objects: int,
    bounds: Bounds,
    passes: int,
    controller: str = "managedresource",
) -> Point | Missed:
    await start(agent)
    meter = Meter(agent, audit)
    meter.start()
    try:
        async with asyncio.timeout(bounds.most * 1.5):
            created = await meter.stop("create", at=await create())
            meter.start()
            rest = await meter.stop("rest", quiet=bounds.rest)
        again = await meter.restart(passes=passes, controller=controller, within=bounds.most)
    except (LocalProcessError, TimeoutError) as error:
        return Missed(count, str(error) or f"longer than {bounds.most * 1.5:.0f} s")
    return _result(created, rest, again, count=count, objects=objects)


def _result(created: Phase, rest: Phase, again: Phase, *, count: int, objects: int) -> Point:
    return Point(
        count=count,
        objects=objects,
        seconds=created.seconds or 0.0,
        calls=sum(created.calls.values()),
        cpu=created.cpu,
        peak=created.peak,
        resident=rest.resident,
        rest_cpu=rest.cpu,
        rest_calls=sum(rest.calls.values()),
        ready=again.ready or 0.0,
        looked_at=again.seconds or 0.0,
        restart_cpu=again.cpu,
        restart_peak=again.peak,
        restart_writes=writes(again.calls),
    )
