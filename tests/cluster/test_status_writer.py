"""What several controllers say of one ManagedResource becomes few writes, and none gets lost."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from managed_world import install_crd

from agent.api import MANAGED_RESOURCES, MANAGED_RESOURCES_VIEW
from agent.status import Advice, Compute, StatusWriter
from devcluster.cluster import Cluster
from kube.cache import Caches, Store
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.errors import Conflict, NotFound
from kube.objects import Object, condition, key, metadata

LONG = 600.0
SHORT = 0.2


def said(condition_type: str, status: str) -> Compute:
    """Sets one condition."""

    def compute(present: Object) -> Object:
        new = {
            "type": condition_type,
            "status": status,
            "reason": "Test",
            "message": "m",
            "lastTransitionTime": "2024-01-01T00:00:00Z",
            "lastUpdateTime": "2024-01-01T00:00:00Z",
        }
        by_type = {c["type"]: c for c in present.get("conditions") or []} | {condition_type: new}
        return {**present, "conditions": list(by_type.values())}

    return compute


class World:
    """A ManagedResource `mr`, and a writer of its status."""

    def __init__(self, client: Client, store: Store[Object], namespace: str) -> None:
        self.client = client
        self.store = store
        self.namespace = namespace
        self.writer = StatusWriter(client, store, MANAGED_RESOURCES)
        self.healthy = False
        self.failures: list[BaseException] = []

    async def create(self) -> Object:
        meta = {"name": "mr", "namespace": self.namespace}
        spec = {"secretRefs": [{"name": "s"}]}
        obj = {
            "apiVersion": MANAGED_RESOURCES.api_version,
            "kind": MANAGED_RESOURCES.kind,
            "metadata": meta,
            "spec": spec,
        }
        created = await self.client.create(MANAGED_RESOURCES, obj)
        self.store.observe(created)
        return created

    def advise(self) -> None:
        """An adviser that has something to say once `Applied` is there; it is settled when it finds it healthy."""

        def adviser(obj: Object) -> Advice | None:
            if condition(obj, "Applied") is None:
                return None
            return Advice(said("Healthy", str(self.healthy)), is_settled=self.healthy)

        self.writer.ask(adviser)

    def later(self, obj: Object, compute: Compute, *, patience: float = LONG) -> bool:
        return self.writer.update_later(obj, compute, patience=patience, failed=self.failures.append)

    async def live(self) -> Object:
        return await self.client.get(MANAGED_RESOURCES, "mr", namespace=self.namespace)

    async def told(self) -> dict[str, str]:
        status = (await self.live()).get("status") or {}
        return {c["type"]: c["status"] for c in status.get("conditions") or []}

    async def until_failed(self) -> None:
        async with asyncio.timeout(60):
            while not self.failures:
                await asyncio.sleep(0.02)

    async def until_told(self, expected: dict[str, str]) -> None:
        async with asyncio.timeout(60):
            while await self.told() != expected:
                await asyncio.sleep(0.02)


@pytest.fixture
async def world(cluster: Cluster, namespace: str) -> AsyncIterator[World]:
    await asyncio.to_thread(install_crd, cluster)
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent="test")
        caches = Caches(client, namespaces=[namespace])
        try:
            store = caches.acquire(MANAGED_RESOURCES_VIEW)
            await store.synced.wait()
            yield World(client, store, namespace)
        finally:
            await caches.close()


async def test_what_is_said_at_the_same_time_is_one_write(world: World) -> None:
    obj = await world.create()
    first, second = await asyncio.gather(
        world.writer.update(obj, said("Applied", "True")), world.writer.update(obj, said("Healthy", "True"))
    )
    assert metadata(first)["resourceVersion"] == metadata(second)["resourceVersion"]
    assert await world.told() == {"Applied": "True", "Healthy": "True"}


async def test_advisers_are_asked_before_something_is_written(world: World) -> None:
    world.advise()
    obj = await world.create()
    await world.writer.update(obj, said("Progressing", "True"))
    assert await world.told() == {"Progressing": "True"}
    written = await world.writer.update(obj, said("Applied", "True"))
    assert await world.told() == {"Progressing": "True", "Applied": "True", "Healthy": "False"}
    world.healthy = True
    same = await world.writer.update(obj, said("Applied", "True"))
    assert metadata(same)["resourceVersion"] == metadata(written)["resourceVersion"], "there was nothing to write"


async def test_who_has_no_objection_is_not_waited_for(world: World) -> None:
    obj = await world.create()
    assert not world.later(obj, said("Applied", "True"))
    world.advise()
    world.healthy = True
    assert not world.later(obj, said("Applied", "True"))


async def test_a_write_waits_until_the_advisers_have_settled(world: World) -> None:
    world.advise()
    obj = await world.create()
    assert world.later(obj, said("Applied", "True"))
    world.writer.reconsider(key(obj))
    await asyncio.sleep(0.1)
    assert await world.told() == {}
    world.healthy = True
    world.writer.reconsider(key(obj))
    await world.until_told({"Applied": "True", "Healthy": "True"})


async def test_a_write_does_not_wait_for_ever(world: World) -> None:
    world.advise()
    obj = await world.create()
    assert world.later(obj, said("Applied", "True"), patience=SHORT)
    await world.until_told({"Applied": "True", "Healthy": "False"})


async def test_what_waits_is_expected_and_goes_out_with_what_comes_after_it(world: World) -> None:
    world.advise()
    obj = await world.create()
    assert world.later(obj, said("Applied", "True"))
    expected = world.writer.expected(obj)
    assert (condition(expected, "Applied") or {}).get("status") == "True"
    assert await world.told() == {}
    await world.writer.update(expected, said("Other", "True"))
    assert await world.told() == {"Applied": "True", "Other": "True", "Healthy": "False"}


async def test_what_waits_is_written_at_the_end(world: World) -> None:
    world.advise()
    obj = await world.create()
    assert world.later(obj, said("Applied", "True"))
    await world.writer.flush()  # it gives the write a moment, but no more
    await world.until_told({"Applied": "True", "Healthy": "False"})


async def test_a_write_that_fails_later_is_told(world: World) -> None:
    world.advise()
    obj = await world.create()
    assert world.later(obj, said("Applied", "True"))
    await world.client.delete(MANAGED_RESOURCES, "mr", namespace=world.namespace)
    await world.writer.flush()
    await world.until_failed()
    assert [type(failure) for failure in world.failures] == [NotFound]


async def test_others_writes_are_not_overwritten(world: World) -> None:
    obj = await world.create()
    foreign = said("Foreign", "True")(obj.get("status") or {})
    await world.client.patch(
        MANAGED_RESOURCES, "mr", {"status": foreign}, namespace=world.namespace, subresource="status"
    )
    await world.writer.update(obj, said("Applied", "True"))
    assert await world.told() == {"Foreign": "True", "Applied": "True"}


async def test_what_is_said_of_one_is_not_written_into_another_of_the_same_name(world: World) -> None:
    # With a store that has not heard of it yet.
    writer = StatusWriter(world.client, Store(MANAGED_RESOURCES_VIEW), MANAGED_RESOURCES)
    former = await world.create()
    await world.client.delete(MANAGED_RESOURCES, "mr", namespace=world.namespace)
    await world.create()
    with pytest.raises(Conflict):
        await writer.update(former, said("Applied", "True"))
    assert await world.told() == {}
