"""Which caches may be behind the clusters, as a metric that is computed when it is scraped."""

from collections.abc import Iterable, Mapping

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kube.cache import Caches


class CacheCollector(Collector):
    """Tells of the caches that it was last `follow`ing; nothing before."""

    def __init__(self) -> None:
        self._clusters: Mapping[str, Caches] = {}

    def follow(self, clusters: Mapping[str, Caches]) -> None:
        """Args: clusters: by what they are called; one that is source and target is the source."""
        self._clusters = clusters

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "resource_manager_cache_behind",
            "1 while what is known of a kind may be old: its first list is not complete, or its watch fails.",
            labels=("connection", "resource"),
        )
        found: dict[tuple[str, str], bool] = {}
        for connection, caches in self._clusters.items():
            for resource, is_behind in caches.behind():
                series = connection, str(resource)
                found[series] = found.get(series, False) or is_behind
        for series, is_behind in found.items():
            family.add_metric(series, is_behind)
        yield family


caches_behind = CacheCollector()
REGISTRY.register(caches_behind)
