"""A watch whose API server was away for long."""

import asyncio
from pathlib import Path

from devcluster.cluster import Cluster
from devcluster.testing.faults import Reset, Rule, unavailable
from kit.proxied import proxied
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import Caches, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.watch import Timings


async def test_it_goes_on_soon_though_the_api_server_answers_with_errors_at_first(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    timings = Timings(first_back_off=0.01, longest_back_off=600, away_back_off=0.02)
    async with proxied(cluster, tmp_path) as (proxy, transport):
        proxy.rules.add(
            # So often that one error more would make it wait for minutes.
            Rule(fault=Reset(), path="configmaps", times=20),
            Rule(fault=unavailable(), path="configmaps", times=3),
        )
        caches = Caches(Client(transport, user_agent="outage"), namespaces=[namespace], timings=timings)
        store = caches.acquire(View(CONFIG_MAPS, without_managed_fields))
        async with asyncio.timeout(60):
            await store.synced.wait()
        assert proxy.injected == {"reset": 20, "unavailable": 3}
        await caches.close()
