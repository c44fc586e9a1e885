"""kill -9 at random moments, again and again, while much is going on."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import pytest

from devcluster.cluster import Cluster
from kit.managed_resources import ManagedWorld, config_map, install_crd, role, service
from kit.processes.agent import AgentProcess, configuration
from kube.objects import Object
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.transport import Transport

_KINDS = (config_map, service, role)


@pytest.fixture
async def admin(cluster: Cluster) -> AsyncIterator[Client]:
    install_crd(cluster)
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        yield Client(transport, user_agent="test")


async def test_real_processes_that_are_killed_at_any_moment_lose_and_leak_nothing(
    cluster: Cluster, namespace: str, admin: Client
) -> None:
    chance = random.Random(20)
    world = ManagedWorld(admin, namespace)
    await world.add_decoys()
    many = [build(f"{build.__name__.replace('_', '-')}-{number}") for number in range(6) for build in _KINDS]
    changed = [build(f"{build.__name__.replace('_', '-')}-{number}", "2") for number in range(1, 7) for build in _KINDS]
    shared = [config_map(f"shared-{number}") for number in range(6)]
    steps: list[dict[str, Sequence[Object] | None]] = [
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
