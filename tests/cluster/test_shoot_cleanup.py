"""What users have left in the cluster of a Shoot goes before the cluster does, also what comes meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from agent.gardenlet.shoot.main.rules.cleanup import Kind
from agent.gardenlet.shoot.main.tasks import cleanup
from devcluster.cluster import Cluster
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.kinds import custom_resource, serve
from kit.shoot_components import bare_operation
from kube.objects import Key, Object, is_deleting
from kube.resources import Resource
from kube.runtime.client import Client
from process.clusters import Cluster as Connected

FIRST, LAST = (custom_resource("cleanup.example.com", kind) for kind in ("First", "Last"))
PATIENCE = 60.0


@dataclass(frozen=True)
class One:
    """The cluster of a Shoot is this one."""

    cluster: Connected

    @asynccontextmanager
    async def use(self, _: str, **__: Any) -> AsyncIterator[Connected]:
        yield self.cluster


async def create(client: Client, namespace: str, resource: Resource, name: str) -> None:
    meta = {"name": name, "namespace": namespace, "finalizers": ["example.com/user"]}
    await client.create(resource, {**resource.type_meta, "metadata": meta})


async def test_all_kinds_are_listed_again_until_a_round_finds_nothing(
    client: Client, cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller of the user makes another object before it lets one go, of the other kind."""
    serve(cluster, FIRST, LAST)
    monkeypatch.setattr(cleanup, "_LOOK_SECONDS", 0.05)
    made = [(LAST, "a"), (FIRST, "b"), (LAST, "c"), (FIRST, "d")]
    await create(client, namespace, *made[0])

    async def let_go(resource: Resource, name: str) -> None:
        async def goes() -> bool:
            return is_deleting(await client.get(resource, Key(namespace, name)))

        await soon(goes, f"{name} to be deleted")
        await client.patch(resource, Key(namespace, name), {"metadata": {"finalizers": None}})

    async def user() -> None:
        for one, following in pairwise(made):
            await create(client, namespace, *following)
            await let_go(*one)
        await let_go(*made[-1])

    operation = bare_operation(technical_id="shoot--a--b", shoot=SHOOT, shoots=One(cluster_of(client)))
    kinds = [Kind(each, PATIENCE, "kubernetes-resources") for each in (FIRST, LAST)]
    async with asyncio.timeout(PATIENCE):
        working = asyncio.create_task(user())
        await cleanup.clean_up(operation, kinds)
        await working
    for resource, name in made:
        assert await client.find(resource, Key(namespace, name)) is None


SHOOT: Object = {"metadata": {"name": "b", "namespace": "garden-a"}, "spec": {"kubernetes": {"version": "1.30.1"}}}
