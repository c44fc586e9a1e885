"""Finalizers come and go, however often others write the object meanwhile."""

import pytest

from devcluster.cluster import Cluster
from kit.objects import obj
from kit.world import World, connected
from kube.json_patches import replacing
from kube.objects import finalizers, key, uid
from kube.resources import CONFIG_MAPS
from kube.runtime.client import JSON_PATCH
from kube.runtime.controller import ReconcileError, is_conflict
from kube.runtime.edits import edit
from kube.runtime.finalizers import ensure_finalizer, remove_finalizer

OWN, OTHER = "example.com/own", "example.com/other"


async def test_what_others_have_written_is_no_conflict(cluster: Cluster, namespace: str) -> None:
    async with connected(cluster) as client:
        world = World(client, namespace)
        for number, changed in enumerate(({"labels": {"a": "b"}}, {"finalizers": [OTHER, OWN]})):
            name = f"held-{number}"
            read = await world.create(obj(CONFIG_MAPS, name, finalizers=[OWN]))
            await world.patch(CONFIG_MAPS, name, {"metadata": changed})
            await world.delete(CONFIG_MAPS, name)
            assert (await remove_finalizer(client, CONFIG_MAPS, read, OWN) is None) == (not number)
            left = await world.find(CONFIG_MAPS, name)
            assert finalizers(left or {}) == ([OTHER] if number else [])
            assert (left is None) == (not number)


async def test_another_object_of_that_name_is_not_let_go(cluster: Cluster, namespace: str) -> None:
    async with connected(cluster) as client:
        world = World(client, namespace)
        read = await world.create(obj(CONFIG_MAPS, "held", finalizers=[OWN]))
        await remove_finalizer(client, CONFIG_MAPS, read, OWN)
        await world.delete(CONFIG_MAPS, "held")
        await remove_finalizer(client, CONFIG_MAPS, read, OWN)  # it is gone
        other = await world.create(obj(CONFIG_MAPS, "held", finalizers=[OWN]))
        await remove_finalizer(client, CONFIG_MAPS, read, OWN)
        live = await world.get(CONFIG_MAPS, "held")
        assert (uid(live), finalizers(live)) == (uid(other), [OWN])
        await remove_finalizer(client, CONFIG_MAPS, live, OWN)


async def test_a_finalizer_is_added_to_what_others_write(cluster: Cluster, namespace: str) -> None:
    async with connected(cluster) as client:
        world = World(client, namespace)
        for number, others in enumerate(([], [OTHER])):
            changed = {"labels": {"a": "b"}, "finalizers": others}
            read = await world.create(obj(CONFIG_MAPS, f"new-{number}"))
            await world.patch(CONFIG_MAPS, f"new-{number}", {"metadata": changed})
            written = await ensure_finalizer(client, CONFIG_MAPS, read, OWN)
            assert finalizers(written) == [*others, OWN]
            assert await ensure_finalizer(client, CONFIG_MAPS, read, OWN) == written, "a cache that is behind"
            await world.delete(CONFIG_MAPS, f"new-{number}")
            read = {**read, "metadata": {**read["metadata"], "finalizers": None}}
            with pytest.raises(ReconcileError) as error:
                await ensure_finalizer(client, CONFIG_MAPS, read, "example.com/late")
            assert is_conflict(error.value), "a deletion is no failure"


async def test_any_text_is_compared(cluster: Cluster, namespace: str) -> None:
    text = 'a<b>&c \u2028\u2029 \u00e4\U0001f600 "q" \\ \n\t\x7f\b\f /'
    async with connected(cluster) as client:
        world = World(client, namespace)
        read = await world.create({**obj(CONFIG_MAPS, "texts"), "data": {"t": text}, "binaryData": {"b": "PD4m"}})
        await world.patch(CONFIG_MAPS, "texts", {"metadata": {"labels": {"a": "b"}}})
        written = await edit(client, CONFIG_MAPS, read, lambda _: {"data": {"t": f"{text}!", "k": "<&>"}})
        assert written["data"] == {"t": f"{text}!", "k": "<&>"}
        patch = replacing(written, {**written, "data": {"new": "<"}})
        assert (await client.patch(CONFIG_MAPS, key(read), patch, content_type=JSON_PATCH))["data"] == {"new": "<"}
