"""Objects that others own as well: their labels and annotations, and changes of files that a Shoot names."""

import asyncio
from typing import Any

import pytest

from agent.gardenlet.shoot import responsibility
from kit.objects import config_map, placed
from kit.world import World
from kube.apply.shared_objects import ensure
from kube.objects import Object, annotations, labels
from kube.resources import CONFIG_MAPS
from kube.runtime.client import Client


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
