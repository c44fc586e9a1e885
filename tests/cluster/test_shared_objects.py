"""Labels and annotations of an object that others own as well."""

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
