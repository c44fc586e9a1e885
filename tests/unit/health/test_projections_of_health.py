"""What is kept of objects that are fine."""

import gc

from agent.resource_manager.health import projections
from agent.resource_manager.health.projections import project_health
from gardener.keys import ORIGIN
from kube.objects import Key, Object
from kube.resources import CONFIG_MAPS


def config_map(name: str, *, of: str) -> Object:
    return {"metadata": {"name": name, "namespace": "ns", "annotations": {ORIGIN: f"ns/{of}"}}}


def test_fine_objects_of_a_managed_resource_share_one_value_until_the_last_goes() -> None:
    first, second, other = (
        project_health(CONFIG_MAPS, config_map(name, of=managed), cluster_id="")
        for name, managed in (("a", "shared"), ("b", "shared"), ("c", "of its own"))
    )
    assert first is second
    assert first is not other
    key = Key("ns", "shared")
    assert first.origin == key
    del first, second
    gc.collect()
    assert key not in projections._FINE
