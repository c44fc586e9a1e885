"""An object that is being deleted is let go, however often others write it meanwhile."""

import pytest

from devcluster.cluster import Cluster
from kit.objects import obj
from kit.world import World, connected
from kube.objects import finalizers, uid
from kube.resources import CONFIG_MAPS
from kube.runtime.controller import ReconcileError
from kube.runtime.finalizers import release, remove_finalizer

OWN, OTHER = "example.com/own", "example.com/other"


async def test_what_others_have_written_is_no_conflict(cluster: Cluster, namespace: str) -> None:
    async with connected(cluster) as client:
        world = World(client, namespace)
        for number, changed in enumerate(({"labels": {"a": "b"}}, {"finalizers": [OTHER, OWN]})):
            name = f"held-{number}"
            read = await world.create(obj(CONFIG_MAPS, name, finalizers=[OWN]))
            await world.patch(CONFIG_MAPS, name, {"metadata": changed})
            await world.delete(CONFIG_MAPS, name)
            with pytest.raises(ReconcileError):
                await remove_finalizer(client, CONFIG_MAPS, read, OWN)
            await release(client, CONFIG_MAPS, read, OWN)
            left = await world.find(CONFIG_MAPS, name)
            assert finalizers(left or {}) == ([OTHER] if number else [])
            assert (left is None) == (not number)


async def test_another_object_of_that_name_is_not_let_go(cluster: Cluster, namespace: str) -> None:
    async with connected(cluster) as client:
        world = World(client, namespace)
        read = await world.create(obj(CONFIG_MAPS, "held", finalizers=[OWN]))
        await release(client, CONFIG_MAPS, read, OWN)
        await world.delete(CONFIG_MAPS, "held")
        await release(client, CONFIG_MAPS, read, OWN)  # it is gone
        other = await world.create(obj(CONFIG_MAPS, "held", finalizers=[OWN]))
        await release(client, CONFIG_MAPS, read, OWN)
        live = await world.get(CONFIG_MAPS, "held")
        assert (uid(live), finalizers(live)) == (uid(other), [OWN])
        await release(client, CONFIG_MAPS, live, OWN)
