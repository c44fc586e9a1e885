"""Objects that others own as well: their labels and annotations, and changes of those that a Shoot names."""

import asyncio
from typing import Any

import pytest

from agent.gardenlet.common.views import shoots_view
from agent.gardenlet.shoot import responsibility
from agent.gardenlet.shoot.main.corrections import Corrections
from agent.gardenlet.shoot.main.rules.timing import Timing
from config.gardenlet.controllers import Shoot as Settings
from kit.eventually import soon
from kit.objects import config_map, placed
from kit.world import World
from kube.apply.shared_objects import ensure
from kube.objects import Key, Object, annotations, key, labels, resource_version
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Caches, Change, Store, View
from kube.runtime.client import Client
from kube.runtime.queue import WorkQueue
from kube.runtime.watch import ListBegins, ListEnds, Present


async def test_it_is_made_once_and_only_what_it_lacks_is_written(world: World, client: Client) -> None:
    def wanted(**of: str) -> Object:
        return placed(config_map("a", {"ours": "1"}, labels=of, annotations={"note": "1"}), world.namespace)

    made = await ensure(client, CONFIG_MAPS, wanted(role="x"))
    assert (made["data"], labels(made)) == ({"ours": "1"}, {"role": "x"})
    theirs = {"data": {"ours": None, "theirs": "1"}, "metadata": {"labels": {"role": "y", "theirs": "1"}}}
    await world.patch("ConfigMap", "a", theirs)

    changed = await ensure(client, CONFIG_MAPS, wanted(role="x"))
    assert changed["data"] == {"theirs": "1"}
    assert labels(changed) == {"role": "x", "theirs": "1"}
    assert annotations(changed) == {"note": "1"}
    again = await ensure(client, CONFIG_MAPS, wanted(role="x"))
    assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


async def test_a_changed_file_of_a_shoot_is_noticed(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other changes of the object are not."""
    monkeypatch.setattr(responsibility, "_FILES_SECONDS", 0.05)
    read, reads = responsibility._data, 0

    async def counted(*place: Any) -> Object:
        nonlocal reads
        found = await read(*place)
        reads += 1
        return found

    async def read_again() -> None:
        """Wait for a read that began after this call."""
        before = reads
        while reads < before + 2:
            await asyncio.sleep(0.01)

    monkeypatch.setattr(responsibility, "_data", counted)
    policy = {"auditPolicy": {"configMapRef": {"name": "policy"}}}
    server: Object = {"auditConfig": policy}
    shoot: Object = {
        "metadata": {"namespace": world.namespace, "name": "s"},
        "spec": {"kubernetes": {"kubeAPIServer": server}},
        "status": {"lastOperation": {"type": "Create", "state": "Processing"}},
    }
    for change in ("created", "changed", "deleted"):
        noticed = asyncio.create_task(responsibility.files_changed(client, shoot))
        await read_again()
        if change != "created":
            await world.patch("ConfigMap", "policy", {"metadata": {"annotations": {"before": change}}})
            await read_again()
        assert not noticed.done(), change
        match change:
            case "created":
                await world.create(config_map("policy", {"policy": "a"}))
            case "changed":
                await world.patch("ConfigMap", "policy", {"data": {"policy": "b"}})
            case _:
                await world.delete("ConfigMap", "policy")
        await asyncio.wait_for(noticed, 30)


class _Watches(Caches):
    """Attributes: open: stores of present watches."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.open: dict[View[Any], Store[Any]] = {}

    def acquire(self, view: View[Any], *, needed_at_start: bool = False) -> Store[Any]:
        self.open[view] = super().acquire(view, needed_at_start=needed_at_start)
        return self.open[view]

    async def release(self, view: View[Any]) -> None:
        del self.open[view]
        await super().release(view)


async def test_a_correction_begins_a_failed_attempt_again_and_nothing_is_watched_otherwise(
    world: World, client: Client
) -> None:
    audit: Object = {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy"}}}}
    shoot: Object = {
        "metadata": {"namespace": world.namespace, "name": "s", "uid": "1", "resourceVersion": "2", "generation": 2},
        "spec": {"seedName": "seed", "kubernetes": {"kubeAPIServer": audit}},
    }
    watches, queue, shoots = _Watches(client), WorkQueue[Key]("shoot"), Store(shoots_view("seed"))
    source = shoots.source("")
    for event in (ListBegins(1), Present(shoot), ListEnds(2)):
        source.apply(event)
    timing = Timing(settings=Settings(), version="1", is_asked=lambda _: False)
    corrections = Corrections(seed_name="seed", client=client, caches=watches, shoots=shoots, timing=timing)

    def reports(state: str, seed: str = "seed", **status: Any) -> None:
        last: Object = {"lastOperation": {"type": "Reconcile", "state": state}, "observedGeneration": 1}
        new = shoot | {"status": {**last, "seedName": seed, **status}}
        corrections.follow(queue, Change(key=key(shoot), old=None, new=new, initial=False))

    policy = Key(world.namespace, "policy")
    await world.create(config_map("policy", {"policy": "a"}))
    reports("Error")
    reports("Processing", lastErrors=[{"taskID": "a"}])
    await soon(lambda: [each.synced.is_set() for each in watches.open.values()] == [True], "the watch")
    (store,) = watches.open.values()
    noted = await world.patch("ConfigMap", "policy", {"metadata": {"annotations": {"a": "b"}}})
    await soon(lambda: store.version(policy) == resource_version(noted), "the annotation")
    assert queue.is_idle
    await world.patch("ConfigMap", "policy", {"data": {"policy": "b"}})
    await soon(lambda: len(queue) == 1 and not watches.open, "another attempt")

    for state, seed in (("Processing", "seed"), ("Succeeded", "seed"), ("Error", "other")):
        reports("Error")
        await soon(lambda: len(watches.open) == 1, "the watch")
        reports(state, seed)
        await soon(lambda: not watches.open, f"its end: {state}, {seed}")
    await corrections.close()
