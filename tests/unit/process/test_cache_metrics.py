"""Which caches are told to be behind."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import cast

from prometheus_client import CollectorRegistry

from kube.resources import CONFIG_MAPS, SECRETS, Resource
from process.caches import CacheCollector
from process.clusters import Cluster


class FakeCaches:
    def __init__(self, *states: tuple[Resource, bool]) -> None:
        self._states = states

    def behind(self) -> Iterator[tuple[Resource, bool]]:
        return iter(self._states)


def told(**clusters: FakeCaches) -> dict[str, float]:
    collector, registry = CacheCollector(), CollectorRegistry()
    found = {name: SimpleNamespace(caches=caches) for name, caches in clusters.items()}
    collector.follow(cast("Mapping[str, Cluster]", found), prefix="p")
    registry.register(collector)
    return {
        "/".join(sample.labels.values()): sample.value for family in registry.collect() for sample in family.samples
    }


def test_before_there_are_clusters_nothing_is_told() -> None:
    registry = CollectorRegistry()
    registry.register(CacheCollector())
    assert [sample for family in registry.collect() for sample in family.samples] == []


def test_each_kind_of_each_cluster_has_a_series() -> None:
    source, target = FakeCaches((SECRETS, False)), FakeCaches((SECRETS, True), (CONFIG_MAPS, False))
    assert told(source=source, target=target) == {
        f"source/{SECRETS}": 0,
        f"target/{SECRETS}": 1,
        f"target/{CONFIG_MAPS}": 0,
    }


def test_of_several_caches_of_a_kind_one_is_enough() -> None:
    assert told(source=FakeCaches((SECRETS, False), (SECRETS, True), (SECRETS, False))) == {f"source/{SECRETS}": 1}
