"""When the caches of the clusters count as filled."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

from kube.cache import Store
from kube.objects import format_duration
from process.clusters import Cluster


def by_name(source: Cluster, target: Cluster) -> dict[str, Cluster]:
    """The clusters by what they are called in messages; one that is both counts once."""
    return {"source": source} if source is target else {"source": source, "target": target}


class CachesNotSynced(Exception):
    """Caches that are needed were not filled in time."""


async def fill(filling: Awaitable[object], clusters: Mapping[str, Cluster], *, timeout: float) -> None:
    """Wait for `filling`, then for all stores that are needed at the start.

    Args:
        filling: what acquires the stores, and may wait for them itself.
        clusters: by what they are called in messages.
        timeout: seconds for all of it.

    Raises:
        CachesNotSynced: that took longer than the timeout.
    """
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            await filling
            for cluster in clusters.values():
                for store in _needed(cluster):
                    await store.synced.wait()
    except TimeoutError:
        if not limit.expired():
            raise
        period = format_duration(timeout)
        raise CachesNotSynced(
            f"failed to wait for caches to sync within {period} (controllers.cacheSyncTimeout): {missing(clusters)}"
        ) from None


def missing(clusters: Mapping[str, Cluster]) -> str:
    """What is needed and has not been listed yet, for people."""
    parts = []
    for name, cluster in clusters.items():
        resources = sorted({str(store.view.resource) for store in _needed(cluster) if not store.synced.is_set()})
        if resources:
            parts.append(f"{', '.join(resources)} of the {name} cluster at {cluster.transport.connection.server}")
    return "; ".join(parts) or "a controller did not start"


def _needed(cluster: Cluster) -> list[Store[Any]]:
    return [store for store in cluster.caches.stores() if store.needed_at_start]
