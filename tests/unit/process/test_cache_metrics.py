"""Which caches are reported as behind."""

from typing import Any
from unittest.mock import Mock

from prometheus_client import CollectorRegistry

from kube.objects import Key
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.runtime.cache import Store, View, without_managed_fields
from process.caches import NOT_SYNCED, CacheCollector, problem

KINDS = (SECRETS, CONFIG_MAPS)


def reported(*, metric: str = "p_cache_behind", **clusters: list[tuple[Resource, bool]]) -> dict[str, float]:
    """Args: clusters: what their caches report of themselves."""
    found: Any = {}
    for name, states in clusters.items():
        stores = [Store(View(resource, without_managed_fields)) for resource, _ in states]
        for number, store in enumerate(stores):
            # One object is the same in all stores, the others are not.
            store.unread = {Key("ns", "same"): 1, Key("ns", str(number)): 1}
        found[name] = Mock(**{"caches.behind.return_value": states, "caches.stores.return_value": stores})
    registry = CollectorRegistry()
    registry.register(CacheCollector(found, prefix="p"))
    samples = [sample for family in registry.collect() if family.name == metric for sample in family.samples]
    return {"/".join(sample.labels.values()): sample.value for sample in samples}


def test_before_there_are_clusters_nothing_is_reported() -> None:
    assert reported() == {}


def test_each_kind_of_each_cluster_has_a_series() -> None:
    expected = {f"source/{SECRETS}": 0, f"target/{SECRETS}": 1, f"target/{CONFIG_MAPS}": 0}
    assert reported(source=[(SECRETS, False)], target=[(SECRETS, True), (CONFIG_MAPS, False)]) == expected


def test_of_several_caches_of_a_kind_one_is_enough() -> None:
    assert reported(source=[(SECRETS, False), (SECRETS, True), (SECRETS, False)]) == {f"source/{SECRETS}": 1}


def test_objects_that_are_not_read_are_counted_once() -> None:
    states = [(SECRETS, False), (SECRETS, False), (CONFIG_MAPS, False)]
    expected = {f"source/{SECRETS}": 3, f"source/{CONFIG_MAPS}": 2}
    assert reported(metric="p_objects_unread", source=states) == expected


def test_a_process_is_not_ready_while_it_does_not_understand_what_it_needs() -> None:
    """What others need later is no reason."""
    needed, other = (Store(View(kind, without_managed_fields), needed_at_start=kind is SECRETS) for kind in KINDS)
    caches = Mock(**{"stores.return_value": [needed, other], "blind.return_value": []})
    cluster: Any = Mock(caches=caches)
    assert problem(cluster) == NOT_SYNCED
    needed.synced.set()
    assert problem(cluster) == ""
    caches.blind.return_value = [other]
    assert problem(cluster) == ""
    caches.blind.return_value = [other, needed]
    assert problem(cluster) == f"responses of the API server can't be parsed, see the log: {SECRETS}"
