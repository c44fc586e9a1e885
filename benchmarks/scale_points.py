"""What the agent costs with so many things of a sort: each point with a control plane and an agent of its own.

All points have the same steps: everything comes into being, rest, a restart. A point that takes longer than it may is
told as such, with how far it came.
"""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import nodes
from benchmarks.observer import Observer, observing
from benchmarks.program import PATIENT_ELECTION, Agent
from benchmarks.reconciling import NAMESPACE, Meter, Phase, restart, start, writes
from benchmarks.workload import Workload, create_namespace, install_crd
from devcluster.audit import Audit
from devcluster.cluster import Cluster
from devcluster.errors import DevclusterError
from gardener.keys import NAMESPACE_SELECTORS
from kube.cache import Caches, View
from kube.client import Client, Form, Transport
from kube.connection import load_kubeconfig
from kube.objects import Object, uid
from kube.resources import NAMESPACES, NETWORK_POLICIES, NODES, SERVICES

_AT_ONCE = 50
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
    """Of all that is looked after."""
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
    async with _running() as (cluster, agent, audit), observing(cluster, NAMESPACE, objects=False) as observer:
        await create_namespace(observer.client, NAMESPACE)
        work = Workload(observer.client, namespace=NAMESPACE, count=count, size=size)
        await work.create_secrets()

        async def create() -> float:
            return await _created(agent, observer, work, bounds)

        return await _point(agent, audit, create, count=grown, objects=count * size, bounds=bounds, passes=count)


async def _created(agent: Agent, observer: Observer, work: Workload, bounds: Bounds) -> float:
    def all_applied() -> bool:
        agent.check()
        return observer.applied(work.size) == work.count

    creating = asyncio.create_task(work.create())
    try:
        return await observer.until(
            all_applied,
            what=f"all to be applied; {observer.applied(work.size)} of {work.count} were at the start",
            within=bounds.most,
            pause=_LOOK_SECONDS,
        )
    except DevclusterError as error:
        raise DevclusterError(f"{observer.applied(work.size)} of {work.count} applied: {error}") from error
    finally:
        creating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await creating


async def by_nodes(count: int, bounds: Bounds) -> Point | Missed:
    """So many Nodes that wait for the pods of three DaemonSets.

    The pods come with their Nodes: the DaemonSet controller would need all of the machine for thousands of Nodes.
    """
    controllers = {"nodeCriticalComponents": {"enabled": True}, "nodeAgentReconciliationDelay": {"enabled": True}}
    async with _running(controllers) as (cluster, agent, audit), _following(cluster) as (client, caches):
        store = caches.acquire(View(NODES, nodes.node_state))
        await store.synced.wait()
        await asyncio.to_thread(cluster.stop_controllers)
        components = await nodes.make_components(client)

        def free() -> int:
            return sum(not node.has_taint and node.delay is not None for _, node in store.items())

        async def join() -> float:
            await nodes.join(client, range(count), components=components)
            return await _until(lambda: free() == count, tell=lambda: f"{free()} of {count} Nodes free", bounds=bounds)

        return await _point(agent, audit, join, count=count, objects=count, bounds=bounds, passes=0)


async def by_services(count: int, bounds: Bounds) -> Point | Missed:
    """So many Services in a tenth as many namespaces, with two policies for each of six namespaces."""
    controllers = {"networkPolicy": {"enabled": True}}
    spread = max(count // 10, _CLIENTS + 1)
    async with _running(controllers) as (cluster, agent, audit), _following(cluster) as (client, caches):
        policies = caches.acquire(View(NETWORK_POLICIES, uid, form=Form.METADATA))
        await policies.synced.wait()
        limit = asyncio.Semaphore(_AT_ONCE)

        async def make(number: int) -> None:
            async with limit:
                await client.create(SERVICES, _service(number, spread))

        for number in range(spread):
            labels = {"client": "x"} if number < _CLIENTS else {}
            await client.create(NAMESPACES, {"metadata": {"name": _namespace(number), "labels": labels}})
        # A Service's own namespace is among those that it lets in by its own policies.
        wanted = sum(2 * (_CLIENTS + (number % spread >= _CLIENTS)) for number in range(count))

        async def create() -> float:
            await asyncio.gather(*map(make, range(count)))
            return await _until(
                lambda: len(policies) == wanted, tell=lambda: f"{len(policies)} of {wanted} policies", bounds=bounds
            )

        return await _point(
            agent, audit, create, count=count, objects=wanted, bounds=bounds, passes=count, controller="networkpolicy"
        )


def _namespace(number: int) -> str:
    return f"scale-{number}"


def _service(number: int, spread: int) -> Object:
    return {
        "metadata": {
            "name": f"s-{number}",
            "namespace": _namespace(number % spread),
            "annotations": {NAMESPACE_SELECTORS: json.dumps([{"matchLabels": {"client": "x"}}])},
        },
        "spec": {
            "clusterIP": "None",
            "selector": {"app": f"s-{number}"},
            "ports": [{"port": 80, "targetPort": 8080}],
        },
    }


# --- what they share


@contextlib.asynccontextmanager
async def _running(controllers: Mapping[str, Any] | None = None) -> AsyncIterator[tuple[Cluster, Agent, Audit]]:
    async with Cluster() as cluster:
        await asyncio.to_thread(install_crd, cluster)
        with (
            tempfile.TemporaryDirectory() as directory,
            Agent(
                cluster,
                Path(directory),
                controllers=dict(controllers or {}),
                sections={"leaderElection": PATIENT_ELECTION},
            ) as agent,
            contextlib.closing(cluster.audit()) as audit,
        ):
            yield cluster, agent, audit


@contextlib.asynccontextmanager
async def _following(cluster: Cluster) -> AsyncIterator[tuple[Client, Caches]]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="benchmark")
        caches = Caches(client)
        try:
            yield client, caches
        finally:
            await caches.close()


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
        again = await restart(agent, audit, passes=passes, controller=controller, within=bounds.most)
    except (DevclusterError, TimeoutError) as error:
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


async def _until(holds: Callable[[], bool], *, tell: Callable[[], str], bounds: Bounds) -> float:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + bounds.most
    while not holds():
        if loop.time() > deadline:
            raise DevclusterError(f"{tell()} after {bounds.most:.0f} s")
        await asyncio.sleep(_LOOK_SECONDS)
    return loop.time()
