"""What the local provider keeps of a Shoot goes with its namespace, and not before."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from kit.world import World
from kube.objects import Key
from kube.resources import NAMESPACES
from localprovider.runner.namespaces import NamespaceReconciler
from localprovider.runner.places import Places
from localprovider.runner.pods import Pods
from localprovider.runner.processes import Processes

GONE = "shoot--dev--gone"


@pytest.fixture
async def pods(tmp_path: Path) -> AsyncIterator[Pods]:
    processes = Processes(tmp_path / "run", now=time.monotonic)
    await processes.begin()
    async with aiohttp.ClientSession() as session:
        yield Pods(Places(tmp_path / "shoots"), processes, session)
    await processes.end()


async def test_processes_data_and_ports_go_with_the_namespace(world: World, pods: Pods) -> None:
    for namespace in (world.namespace, GONE):
        pods.places.port(namespace, "kube-apiserver")
        pods.places.of_pod(namespace, "etcd-main")
        await pods.processes.start(f"{namespace}.etcd-main", ["sleep", "600"])
    assert await world.client.find(NAMESPACES, GONE) is None
    reconciler = NamespaceReconciler(client=world.client, pods=pods)
    for namespace in (world.namespace, GONE):
        await reconciler.reconcile(Key("", namespace))
    assert pods.places.namespaces() == [world.namespace]
    assert await pods.processes.running() == {f"{world.namespace}.etcd-main": True}
