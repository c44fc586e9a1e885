"""Objects that a store does not know are read before they count as missing."""

import pytest

from kit.controllers import Behind
from kit.objects import config_map
from kit.world import World
from kube.errors import NotUnderstood
from kube.objects import Key, labels
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import View
from kube.runtime.client import Form
from kube.runtime.presence import present


@pytest.mark.parametrize("form", Form)
async def test_an_object_that_a_store_does_not_know_is_requested_once(world: World, form: Form) -> None:
    store = Behind(world.client, CONFIG_MAPS).acquire(View(CONFIG_MAPS, labels, form=form))
    there, missing = Key(world.namespace, "there"), Key(world.namespace, "missing")
    made = config_map("there")
    made["metadata"]["labels"] = {"a": "b"}
    await world.create(made)
    assert await present(world.client, store, there) == store.get(there) == {"a": "b"}
    assert await present(world.client, store, missing) is None
    await world.delete("ConfigMap", "there")
    assert await present(world.client, store, there) == {"a": "b"}  # the watch will report it


@pytest.mark.parametrize(
    "view",
    [View(CONFIG_MAPS, labels, label_selector="a=b"), View(CONFIG_MAPS, labels, field_selector="metadata.name!=other")],
)
async def test_an_object_that_a_view_does_not_select_is_not_in_its_store(
    world: World, view: View[dict[str, str]]
) -> None:
    store = Behind(world.client, CONFIG_MAPS).acquire(view)
    other = Key(world.namespace, "other")
    await world.create(config_map("other"))
    assert await present(world.client, store, other) is None
    assert not store.all_keys()


async def test_an_object_that_cannot_be_understood_is_not_missing(world: World) -> None:
    store = Behind(world.client, CONFIG_MAPS).acquire(View(CONFIG_MAPS, lambda obj: obj["data"]["key"]))
    await world.create(config_map("odd"))
    for _ in range(2):
        with pytest.raises(NotUnderstood, match="odd exists, but can't be parsed"):
            await present(world.client, store, Key(world.namespace, "odd"))


@pytest.mark.parametrize("name", ["a,b", "a=b", "a!=b", "a\\", "\\,", "a b", "ä", ",metadata.name!=x"])
async def test_no_object_has_a_name_that_no_object_can_have(world: World, name: str) -> None:
    store = Behind(world.client, CONFIG_MAPS).acquire(View(CONFIG_MAPS, labels))
    assert await present(world.client, store, Key(world.namespace, name)) is None
