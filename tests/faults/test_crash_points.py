"""kill -9 between any two writes.

An incarnation of the control loop ends for good at its n-th write, with all that it had in memory: either the write is
never sent, or it is carried out and nobody sees the answer. The next incarnation finds what is left and has to make
everything right. That is done for every n of each operation, all n of an operation side by side, each in a namespace
of its own. At the end all ManagedResources are deleted, and nothing of theirs may be left.
"""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from agent_process import AgentProcess, configuration
from managed_world import (
    USER_AGENT,
    World,
    config_map,
    control_loop,
    create_namespace,
    deployment,
    install_crd,
    remove_namespace,
    role,
    service,
)

from agent.managed_resource import keys
from devcluster.cluster import Cluster
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.errors import KubeError
from kube.objects import Object

WRITES = {"POST", "PUT", "PATCH", "DELETE"}
State = dict[str, Sequence[Object] | None]


class KilledError(KubeError):
    """The incarnation is dead: nothing that it does reaches anybody."""


class MortalClient(Client):
    """Dies at a write, the `last_write`-th after `arm`: with `carried_out`, just after the API server did it."""

    def __init__(self, transport: Transport, *, last_write: int, carried_out: bool) -> None:
        super().__init__(transport, user_agent=USER_AGENT)
        self.ended = asyncio.Event()
        self.writes = 0
        self._last_write = last_write
        self._carried_out = carried_out
        self._armed = self._dead = False

    def arm(self) -> None:
        self._armed = True

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if method in WRITES and self._armed:
            await self._count(method, path, options)
        return await super().request(method, path, **options)

    async def _count(self, method: str, path: str, options: dict[str, Any]) -> None:
        if self._dead:
            raise KilledError("dead")
        self.writes += 1
        if self.writes != self._last_write:
            return
        self._dead = True
        try:
            if self._carried_out:
                await super().request(method, path, **options)
        finally:
            self.ended.set()
        raise KilledError("killed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """From one state of some ManagedResources to the next."""

    before: State = field(default_factory=dict)
    after: State
    finally_: State | None = None
    """What is wanted when the next incarnation starts, if not the same."""
    keeps: Sequence[tuple[str, str]] = ()
    """Kind and name of objects that must not be made anew."""
    fewest_writes: int
    cold: bool = False
    """Whether the incarnation that is going to die starts only after the change."""


SMALL = (config_map("c-1"), config_map("c-2"), service("s"), role("r"), deployment("d"))
OPERATIONS = {
    "creation": Operation(after={"a": SMALL}, fewest_writes=8),
    "change": Operation(
        before={"a": SMALL},
        after={"a": (config_map("c-1", "2"), config_map("c-3"), service("s", "2"), role("r"), role("r-2"))},
        keeps=[("ConfigMap", "c-1"), ("Service", "s"), ("Role", "r")],
        fewest_writes=8,
    ),
    "change of which one object after the other is taken back": Operation(
        before={"a": SMALL},
        after={"a": (config_map("c-1", "2"), config_map("c-2", "2"), service("s", "2"), role("r", "2"))},
        finally_={"a": SMALL},
        keeps=[("ConfigMap", "c-1"), ("ConfigMap", "c-2"), ("Service", "s"), ("Role", "r")],
        fewest_writes=6,
    ),
    "deletion": Operation(before={"a": SMALL, "b": [config_map("other")]}, after={"a": None}, fewest_writes=7),
    "hand-over, receiver first": Operation(
        before={"a": (config_map("a"), config_map("x"), service("y")), "b": [config_map("b")]},
        after={"b": [config_map("b"), config_map("x", "2"), service("y")], "a": [config_map("a")]},
        keeps=[("ConfigMap", "x"), ("Service", "y")],
        fewest_writes=5,
    ),
    "hand-over that a new leader finds": Operation(
        before={"a": (config_map("a"), config_map("x"), service("y")), "b": [config_map("b")]},
        after={"a": [config_map("a")], "b": [config_map("b"), config_map("x", "2"), service("y")]},
        keeps=[("ConfigMap", "x"), ("Service", "y")],
        fewest_writes=5,
        cold=True,
    ),
    "hand-over by deletion": Operation(
        before={"a": (config_map("a"), config_map("x"), deployment("y")), "b": [config_map("b")]},
        after={"b": [config_map("b"), config_map("x"), deployment("y")], "a": None},
        keeps=[("ConfigMap", "x"), ("Deployment", "y")],
        fewest_writes=7,
    ),
    "release": Operation(
        before={"a": (config_map("a"), config_map("x"))},
        after={"a": (config_map("a", "2"), config_map("x", **{keys.MODE: keys.MODE_IGNORE}))},
        keeps=[("ConfigMap", "x")],
        fewest_writes=3,
    ),
}


class Sweep:
    """All crash points of an operation, in one way to die."""

    def __init__(self, cluster: Cluster, admin: Client, operation: Operation, *, carried_out: bool) -> None:
        self._cluster = cluster
        self._admin = admin
        self._operation = operation
        self._carried_out = carried_out

    async def writes(self) -> int:
        """How many writes the operation takes when nobody dies."""
        return await self.crash_at(0)

    async def crash_at(self, last_write: int) -> int:
        """Go through it all with a death at one write; how many writes there were until then."""
        operation = self._operation
        async with self._world() as world:
            await world.add_decoys()
            async with self._incarnation(world, last_write) as mortal:
                await world.want(operation.before)
                await world.settle()
                await world.keep(*operation.keeps)
                if not operation.cold:
                    mortal.arm()
                    await world.want(operation.after)
                    await self._until_dead_or_settled(world, mortal)
            if operation.cold:
                await world.want(operation.after)
                async with self._incarnation(world, last_write) as mortal:
                    mortal.arm()
                    await self._until_dead_or_settled(world, mortal)
            if operation.finally_ is not None:
                await world.want(operation.finally_)
            async with self._incarnation(world, 0):
                await world.settle()
                world.kept.clear()
                await world.want_nothing()
                await world.settle()
            return mortal.writes

    async def _until_dead_or_settled(self, world: World, mortal: MortalClient) -> None:
        tasks = [asyncio.create_task(mortal.ended.wait()), asyncio.create_task(world.settle())]
        done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for task in done:
            task.result()

    @asynccontextmanager
    async def _world(self) -> AsyncIterator[World]:
        name = f"test-{uuid.uuid4().hex[:12]}"
        await create_namespace(self._admin, name)
        try:
            yield World(self._admin, name)
        finally:
            await remove_namespace(self._admin, name)

    @asynccontextmanager
    async def _incarnation(self, world: World, last_write: int) -> AsyncIterator[MortalClient]:
        async with Transport(load_kubeconfig(self._cluster.kubeconfig)) as transport:
            client = MortalClient(transport, last_write=last_write, carried_out=self._carried_out)
            async with control_loop(client, world.namespace):
                yield client


@pytest.fixture(scope="session")
def managed_resources(cluster: Cluster) -> None:
    install_crd(cluster)


@pytest.fixture
async def admin(cluster: Cluster, managed_resources: None) -> AsyncIterator[Client]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield Client(transport, user_agent="test")


@pytest.mark.parametrize("carried_out", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", OPERATIONS)
async def test_killed_at_any_write_of(name: str, carried_out: bool, cluster: Cluster, admin: Client) -> None:
    operation = OPERATIONS[name]
    sweep = Sweep(cluster, admin, operation, carried_out=carried_out)
    needed = await sweep.writes()
    assert needed >= operation.fewest_writes, "there are not as many writes as there must be: the sweep misses some"
    async with asyncio.TaskGroup() as group:
        crashes = [group.create_task(sweep.crash_at(number)) for number in range(1, needed + 1)]
    reached = sum(crash.result() == number for number, crash in enumerate(crashes, 1))
    assert reached >= operation.fewest_writes


async def test_real_processes_that_are_killed_at_any_moment_lose_and_leak_nothing(
    cluster: Cluster, namespace: str, admin: Client
) -> None:
    chance = random.Random(20)
    world = World(admin, namespace)
    await world.add_decoys()
    many = [build(f"{build.__name__.replace('_', '-')}-{number}") for number in range(6) for build in _KINDS]
    changed = [build(f"{build.__name__.replace('_', '-')}-{number}", "2") for number in range(1, 7) for build in _KINDS]
    shared = [config_map(f"shared-{number}") for number in range(6)]
    steps: list[State] = [
        {"a": [*many, *shared], "b": [config_map("b")]},
        {"b": [config_map("b"), *shared], "a": changed},
        {"a": many, "b": None},
    ]
    config = configuration(namespace, leaderElection={"leaderElect": False})

    def agent() -> AgentProcess:
        return AgentProcess(config, kubeconfig=cluster.kubeconfig)

    unfinished = 0
    for number, step in enumerate(steps):
        await world.want(step)
        for _ in range(3):
            with agent() as victim:
                await asyncio.to_thread(victim.wait_until_ready)
                await asyncio.sleep(chance.random() * 0.25)
                victim.kill()
            unfinished += bool(await world.problems())
        with agent() as survivor:
            await world.settle()
            if number == 0:
                await world.keep(*(("ConfigMap", f"shared-{number}") for number in range(6)))
            elif number == 1:
                world.kept.clear()  # the next step drops them
            assert survivor.process.poll() is None
    assert unfinished, "none was killed at work: this test shows nothing"
    await world.want_nothing()
    with agent():
        await world.settle()


_KINDS = (config_map, service, role)
