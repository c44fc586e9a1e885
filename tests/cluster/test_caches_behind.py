"""When a cache reports that it may lack what is in the cluster."""

import asyncio
import uuid

from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.kinds import custom_resource
from kit.objects import rule
from kit.rbac import grant
from kit.world import connected
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.cache import Caches, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.watch import Timings

QUICK = Timings(first_back_off=0.02, longest_back_off=0.3)


async def test_a_cache_is_behind_while_it_is_not_allowed_to_watch(cluster: Cluster, namespace: str) -> None:
    user = f"reader-{uuid.uuid4().hex[:8]}"
    async with connected(cluster.kubeconfig_for(user)) as client:
        caches = Caches(client, namespaces=[namespace], timings=QUICK)
        for resource in (CONFIG_MAPS, SECRETS):
            caches.acquire(View(resource, without_managed_fields))
        assert dict(caches.behind()) == {CONFIG_MAPS: True, SECRETS: True}
        await asyncio.to_thread(grant, cluster, user, rule("", "configmaps", "list watch"), namespace=namespace)
        await soon(lambda: dict(caches.behind()) == {CONFIG_MAPS: False, SECRETS: True}, "one of them to be in order")
        await caches.close()
        assert dict(caches.behind()) == {}


async def test_a_cache_of_a_kind_that_is_not_served_is_not_behind(client: Client) -> None:
    kind = custom_resource(f"t{uuid.uuid4().hex[:10]}.example.com", "Widget")
    caches = Caches(client, timings=QUICK)
    view = View(kind, without_managed_fields)
    store = caches.acquire(view)
    async with asyncio.timeout(60):
        await store.synced.wait()
        await caches.tried(view, timeout=60)
    assert dict(caches.behind()) == {kind: False}
    await caches.close()
