"""What several controllers report of one ManagedResource becomes few writes, and none gets lost."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.resource_manager.common.views import MANAGED_RESOURCES_VIEW
from devcluster.cluster import Cluster
from devcluster.testing.faults import Delay, Overtake, Rule
from gardener.api.kinds import MANAGED_RESOURCES
from kit.eventually import soon
from kit.objects import managed_resource
from kit.proxied import proxied
from kit.world import World
from kube.errors import Conflict, NotFound
from kube.objects import Object, condition, finalizers, key, labels, metadata
from kube.runtime.cache import Caches, Store
from kube.runtime.client import Client
from kube.runtime.finalizers import ensure_finalizer
from kube.runtime.status import Advice, Compute, Overtaken, StatusWriter

LONG = 600.0
SHORT = 0.2


def reported(condition_type: str, status: str) -> Compute:
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


class StatusWorld(World):
    """A ManagedResource `mr`, and a writer of its status."""

    def __init__(self, client: Client, store: Store[Object], namespace: str) -> None:
        super().__init__(client, namespace)
        self.store = store
        self.writer = StatusWriter(client, store)
        self.healthy = False
        self.failures: list[BaseException] = []

    async def managed_resource(self) -> Object:
        created = await self.create(managed_resource("mr"))
        self.store.observe(created)
        return created

    def advise(self) -> None:
        """An adviser that has something to report once `Applied` is there; it is settled when it finds it healthy."""

        def adviser(obj: Object) -> Advice | None:
            if condition(obj, "Applied") is None:
                return None
            return Advice(reported("Healthy", str(self.healthy)), is_settled=self.healthy)

        self.writer.ask(adviser)

    def later(self, obj: Object, compute: Compute, *, patience: float = LONG) -> bool:
        return self.writer.update_later(obj, compute, patience=patience, failed=self.failures.append)

    async def written(self) -> dict[str, str]:
        status = (await self.get("ManagedResource", "mr")).get("status") or {}
        return {c["type"]: c["status"] for c in status.get("conditions") or []}

    async def until_written(self, expected: dict[str, str]) -> None:
        async def is_written() -> bool:
            return await self.written() == expected

        await soon(is_written, f"{expected} to be written")


@pytest.fixture
async def world(client: Client, namespace: str, managed_resources: None) -> AsyncIterator[StatusWorld]:
    caches = Caches(client, namespaces=[namespace])
    try:
        store = caches.acquire(MANAGED_RESOURCES_VIEW)
        await store.synced.wait()
        yield StatusWorld(client, store, namespace)
    finally:
        await caches.close()


async def test_what_is_reported_at_the_same_time_is_one_write(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    first, second = await asyncio.gather(
        world.writer.update(obj, reported("Applied", "True")), world.writer.update(obj, reported("Healthy", "True"))
    )
    assert metadata(first)["resourceVersion"] == metadata(second)["resourceVersion"]
    assert await world.written() == {"Applied": "True", "Healthy": "True"}


async def test_advisers_are_queried_before_something_is_written(world: StatusWorld) -> None:
    world.advise()
    obj = await world.managed_resource()
    await world.writer.update(obj, reported("Progressing", "True"))
    assert await world.written() == {"Progressing": "True"}
    written = await world.writer.update(obj, reported("Applied", "True"))
    assert await world.written() == {"Progressing": "True", "Applied": "True", "Healthy": "False"}
    world.healthy = True
    same = await world.writer.update(obj, reported("Applied", "True"))
    assert metadata(same)["resourceVersion"] == metadata(written)["resourceVersion"], "there was nothing to write"


async def test_who_has_no_objection_is_not_waited_for(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    assert not world.later(obj, reported("Applied", "True"))
    world.advise()
    world.healthy = True
    assert not world.later(obj, reported("Applied", "True"))


async def test_a_write_waits_until_the_advisers_have_settled(world: StatusWorld) -> None:
    world.advise()
    obj = await world.managed_resource()
    assert world.later(obj, reported("Applied", "True"))
    world.writer.reconsider(key(obj))
    await asyncio.sleep(0.1)
    assert await world.written() == {}
    world.healthy = True
    world.writer.reconsider(key(obj))
    await world.until_written({"Applied": "True", "Healthy": "True"})


async def test_a_write_does_not_wait_for_ever(world: StatusWorld) -> None:
    world.advise()
    obj = await world.managed_resource()
    assert world.later(obj, reported("Applied", "True"), patience=SHORT)
    await world.until_written({"Applied": "True", "Healthy": "False"})


async def test_a_write_waits_the_longer_the_slower_answers_are(
    world: StatusWorld, cluster: Cluster, tmp_path: Path
) -> None:
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=Delay(seconds=1.0), methods=("PATCH",)))
        world.writer = StatusWriter(Client(transport, user_agent="test"), world.store)
        obj = await world.managed_resource()
        for text in ("1", "2"):
            obj = await world.writer.update(obj, reported("Progressing", text))
        assert 3.0 < world.writer.patience <= 30.0
        world.advise()
        assert world.later(obj, reported("Applied", "True"), patience=0.0)
        await asyncio.sleep(0.1)
        world.healthy = True
        world.writer.reconsider(key(obj))
        await world.until_written({"Progressing": "2", "Applied": "True", "Healthy": "True"})
        assert [each.request.method for each in proxy.log].count("PATCH") == 3


async def test_what_waits_is_expected_and_goes_out_with_what_comes_after_it(world: StatusWorld) -> None:
    world.advise()
    obj = await world.managed_resource()
    assert world.later(obj, reported("Applied", "True"))
    expected = world.writer.expected(obj)
    assert (condition(expected, "Applied") or {}).get("status") == "True"
    assert await world.written() == {}
    await world.writer.update(expected, reported("Other", "True"))
    assert await world.written() == {"Applied": "True", "Other": "True", "Healthy": "False"}


async def test_what_waits_is_written_at_the_end(world: StatusWorld) -> None:
    world.advise()
    obj = await world.managed_resource()
    assert world.later(obj, reported("Applied", "True"))
    await world.writer.flush()  # it gives the write a moment, but no more
    await world.until_written({"Applied": "True", "Healthy": "False"})


async def test_a_write_that_fails_later_is_reported(world: StatusWorld) -> None:
    world.advise()
    obj = await world.managed_resource()
    assert world.later(obj, reported("Applied", "True"))
    await world.delete("ManagedResource", "mr")
    await world.writer.flush()
    await soon(lambda: world.failures, "a failure")
    assert [type(failure) for failure in world.failures] == [NotFound]


async def test_others_writes_are_not_overwritten(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    foreign = reported("Foreign", "True")(obj.get("status") or {})
    await world.patch("ManagedResource", "mr", {"status": foreign}, subresource="status")
    await world.writer.update(obj, reported("Applied", "True"))
    assert await world.written() == {"Foreign": "True", "Applied": "True"}


async def test_what_is_reported_of_one_is_not_written_into_another_of_the_same_name(world: StatusWorld) -> None:
    # With a store that has not heard of it yet.
    writer = StatusWriter(world.client, Store(MANAGED_RESOURCES_VIEW))
    former = await world.managed_resource()
    await world.delete("ManagedResource", "mr")
    await world.managed_resource()
    with pytest.raises(Conflict):
        await writer.update(former, reported("Applied", "True"))
    assert await world.written() == {}


async def test_nothing_is_reported_of_what_is_not_of_its_writers_any_more(world: StatusWorld) -> None:
    # With a store that has not heard of it yet.
    writer = StatusWriter(world.client, Store(MANAGED_RESOURCES_VIEW), still=lambda obj: not labels(obj))
    obj = await world.managed_resource()
    await world.patch("ManagedResource", "mr", {"metadata": {"annotations": {"a": "b"}}})
    await writer.update(obj, reported("Applied", "True"))
    await world.patch("ManagedResource", "mr", {"metadata": {"labels": {"is-of": "others"}}})
    with pytest.raises(Overtaken):
        await writer.update(obj, reported("Applied", "False"))
    assert await world.written() == {"Applied": "True"}


async def test_fields_are_written_if_they_report_something_new(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    written = await world.writer.write(obj, {"observedGeneration": 7, "secretsDataChecksum": "abc"})
    assert await world.writer.write(written, {"observedGeneration": 7, "conditions": None, "resources": []}) is written
    written = await world.writer.write(written, {"observedGeneration": 0, "secretsDataChecksum": None})
    assert written["status"] == {"observedGeneration": 0}, "zero reports something; None removes a field"


async def test_a_list_is_written_as_a_whole(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    long = {"conditions": reported("A", "True")(reported("B", "True")({}))["conditions"]}
    written = await world.writer.write(obj, long)
    short = reported("B", "False")({})["conditions"]
    written = await world.writer.write(written, {"conditions": short})
    assert [(each["type"], each["status"]) for each in written["status"]["conditions"]] == [("B", "False")]


async def test_a_write_is_overtaken_by_a_change_of_what_it_was_decided_by(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    await world.patch("ManagedResource", "mr", {"spec": {"class": "other"}})
    with pytest.raises(Overtaken):
        await world.writer.write(obj, {"observedGeneration": 7})
    assert not (await world.get("ManagedResource", "mr")).get("status")
    obj = await world.get("ManagedResource", "mr")
    await world.patch("ManagedResource", "mr", {"status": {"observedGeneration": 3}}, subresource="status")
    with pytest.raises(Overtaken):
        await world.writer.write(obj, {"observedGeneration": 7})
    assert (await world.get("ManagedResource", "mr"))["status"] == {"observedGeneration": 3}


async def test_others_who_write_all_the_time_are_not_in_the_way(
    world: StatusWorld, cluster: Cluster, tmp_path: Path
) -> None:
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(Rule(fault=Overtake(), methods=("PATCH", "PUT")))
        client = Client(transport, user_agent="test")
        # With a store that never hears of the others.
        writer = StatusWriter(client, Store(MANAGED_RESOURCES_VIEW))
        obj = await world.managed_resource()
        await writer.write(obj, {"secretsDataChecksum": "abc"})
        await writer.write(obj, {"observedGeneration": 7})
        await writer.update(obj, reported("Applied", "True"))
        held = await ensure_finalizer(client, MANAGED_RESOURCES, obj, "example.com/own")
        assert len(proxy.log) == len([each for each in proxy.log if each.answer in {200, 409}])
        answers = [each.answer for each in proxy.log if each.request.method == "PATCH"]
        assert answers == [409, 200, 409, 200, 409, 200, 200], "only the first try of a status is locked"
        live = await world.get("ManagedResource", "mr")
        assert labels(live) == labels(obj)
        assert finalizers(held) == ["example.com/own"]
        assert (live["status"]["secretsDataChecksum"], live["status"]["observedGeneration"]) == ("abc", 7)
        assert await world.written() == {"Applied": "True"}


async def test_a_write_is_overtaken_by_a_deletion(world: StatusWorld) -> None:
    obj = await world.managed_resource()
    await world.delete("ManagedResource", "mr")
    with pytest.raises(Overtaken):
        await world.writer.write(obj, {"observedGeneration": 7})
