"""Which caches are told to be behind."""

from typing import Any
from unittest.mock import Mock

from prometheus_client import CollectorRegistry

from kube.resources import CONFIG_MAPS, SECRETS, Resource
from process.caches import CacheCollector


def told(**clusters: list[tuple[Resource, bool]]) -> dict[str, float]:
    """Args: clusters: what their caches say of themselves."""
    collector, registry = CacheCollector(), CollectorRegistry()
    registry.register(collector)
    if clusters:
        found: Any = {name: Mock(**{"caches.behind.return_value": states}) for name, states in clusters.items()}
        collector.follow(found, prefix="p")
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {"/".join(sample.labels.values()): sample.value for sample in samples}


def test_before_there_are_clusters_nothing_is_told() -> None:
    assert told() == {}


def test_each_kind_of_each_cluster_has_a_series() -> None:
    expected = {f"source/{SECRETS}": 0, f"target/{SECRETS}": 1, f"target/{CONFIG_MAPS}": 0}
    assert told(source=[(SECRETS, False)], target=[(SECRETS, True), (CONFIG_MAPS, False)]) == expected


def test_of_several_caches_of_a_kind_one_is_enough() -> None:
    assert told(source=[(SECRETS, False), (SECRETS, True), (SECRETS, False)]) == {f"source/{SECRETS}": 1}
