"""State of the caches of the clusters: filled, or behind."""

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kube.clock import format_duration
from kube.objects import Key
from kube.runtime.cache import Store
from process.clusters import Cluster, distinct
from process.probes import HealthCheck, informer_sync
from process.runner import StartError

NOT_SYNCED = "informers not synced yet"


class CachesNotSynced(StartError):
    """Required caches were not filled in time."""


async def fill(
    filling: Awaitable[object], clusters: Mapping[str, Cluster], *, timeout: float, path: str = "cacheSyncTimeout"
) -> None:
    """Wait for `filling`, then for all stores that are needed at the start.

    Args:
        filling: acquires the stores, and may wait for them itself.
        clusters: by their names in messages.
        timeout: seconds for all of it.
        path: of the timeout in the program's configuration, for the message.

    Raises:
        CachesNotSynced: that took longer than the timeout.
    """
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            await filling
            for cluster in distinct(clusters).values():
                for store in _needed(cluster):
                    await store.synced.wait()
    except TimeoutError:
        if not limit.expired():
            raise
        period = format_duration(timeout)
        raise CachesNotSynced(
            f"failed to wait for caches to sync within {period} ({path}): {missing(clusters)}"
        ) from None


def missing(clusters: Mapping[str, Cluster]) -> str:
    """Return a text about required resources that have not been listed yet."""
    parts = []
    for name, cluster in distinct(clusters).items():
        resources = sorted({str(store.view.resource) for store in _needed(cluster) if not store.synced.is_set()})
        if resources:
            parts.append(f"{', '.join(resources)} of the {name} cluster at {cluster.transport.connection.server}")
    return "; ".join(parts) or "a controller did not start"


def problem(cluster: Cluster) -> str:
    """Return the reason why this process cannot see the cluster; empty if it can.

    All resources needed at the start must have been listed once, and the API server's data about them must be valid.
    Later watches do not matter for this process: one kind whose conversion webhook is broken, or that may not be
    listed, must not hold up a roll-out. Code that needs such a kind reports that itself.
    """
    if not all(store.synced.is_set() for store in _needed(cluster)):
        return NOT_SYNCED
    blind = sorted({str(store.view.resource) for store in cluster.caches.blind() if store.needed_at_start})
    return f"responses of the API server can't be parsed, see the log: {', '.join(blind)}" if blind else ""


def _needed(cluster: Cluster) -> list[Store[Any]]:
    return [store for store in cluster.caches.stores() if store.needed_at_start]


class SyncChecks:
    """Readiness checks `informer-sync`: one for each cluster, as long as it is connected.

    A cluster that is not configured has none until some store of it is needed: probes are public, its name need not be.

    Args: configured: names of clusters; if there is only one, the check has no prefix.
    """

    def __init__(self, clusters: Mapping[str, Cluster], *, configured: Sequence[str]) -> None:
        self._clusters, self._configured = clusters, configured

    def __call__(self) -> Iterator[HealthCheck]:
        for name, cluster in self._clusters.items():
            if name in self._configured or _needed(cluster):
                is_sole = name in self._configured and len(self._configured) == 1
                check = "informer-sync" if is_sole else f"{name}-informer-sync"
                yield informer_sync(check, partial(self._problem, name))

    def _problem(self, name: str) -> str:
        cluster = self._clusters.get(name)
        return problem(cluster) if cluster is not None else ""


class CacheCollector(Collector):
    """Collects caches that may be behind, and numbers of unread objects, during a scrape.

    Args: prefix: of the metric's name.
    """

    def __init__(self, clusters: Mapping[str, Cluster], *, prefix: str) -> None:
        self._clusters, self._prefix = clusters, prefix

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            f"{self._prefix}_cache_behind",
            "1 while the cache of a kind may be outdated: its first list is incomplete, or its watch fails.",
            labels=("connection", "resource"),
        )
        unread = GaugeMetricFamily(
            f"{self._prefix}_objects_unread",
            "Number of objects that cannot be read or parsed completely; the log names them.",
            labels=("connection", "resource"),
        )
        found: dict[tuple[str, str], bool] = {}
        objects: dict[tuple[str, str], set[Key]] = {}
        for connection, cluster in distinct(self._clusters).items():
            for resource, is_behind in cluster.caches.behind():
                series = connection, str(resource)
                found[series] = found.get(series, False) or is_behind
            for store in cluster.caches.stores():
                objects.setdefault((connection, str(store.view.resource)), set()).update(store.unread)
        for series, is_behind in found.items():
            family.add_metric(series, is_behind)
            unread.add_metric(series, len(objects.get(series, ())))
        yield family
        yield unread


class RefusalCollector(Collector):
    """Collects kinds that the process works without, since it may not read them. Args: prefix: of the metric's name."""

    def __init__(self, clusters: Mapping[str, Cluster], *, prefix: str) -> None:
        self._clusters, self._prefix = clusters, prefix

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            f"{self._prefix}_reads_refused",
            "1 for a kind that the process works without, with reduced function, since it may not read it.",
            labels=("connection", "resource"),
        )
        for connection, cluster in distinct(self._clusters).items():
            for resource in sorted(cluster.caches.refused(), key=str):
                family.add_metric((connection, str(resource)), 1)
        yield family
