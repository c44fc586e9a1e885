"""When a cache says that it may lack what is in the cluster."""

import asyncio
import uuid
from collections.abc import Callable

from devcluster.cluster import Cluster
from kube.cache import Caches, View, without_managed_fields
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.resources import CONFIG_MAPS, SECRETS, Resource
from kube.watch import Timings

QUICK = Timings(first_back_off=0.02, longest_back_off=0.3)
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}"


async def until(what: str, holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


def may_read_config_maps(cluster: Cluster, namespace: str, user: str) -> None:
    path = RBAC.format(namespace)
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
    cluster.api.create(f"{path}/roles", {"metadata": {"name": user}, "rules": [rule]})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    cluster.api.create(f"{path}/rolebindings", {"metadata": {"name": user}, "roleRef": ref, "subjects": [subject]})


async def test_a_cache_is_behind_while_it_is_not_allowed_to_watch(cluster: Cluster, namespace: str) -> None:
    user = f"reader-{uuid.uuid4().hex[:8]}"
    async with Transport(load_kubeconfig(cluster.kubeconfig_for(user))) as transport:
        caches = Caches(Client(transport, user_agent=user), namespaces=[namespace], timings=QUICK)
        for resource in (CONFIG_MAPS, SECRETS):
            caches.acquire(View(resource, without_managed_fields))
        assert dict(caches.behind()) == {CONFIG_MAPS: True, SECRETS: True}
        await asyncio.to_thread(may_read_config_maps, cluster, namespace, user)
        await until("one of them to be in order", lambda: dict(caches.behind()) == {CONFIG_MAPS: False, SECRETS: True})
        await caches.close()
        assert dict(caches.behind()) == {}


async def test_a_cache_of_a_kind_that_is_not_served_is_not_behind(cluster: Cluster) -> None:
    kind = Resource(f"t{uuid.uuid4().hex[:10]}.example.com", "v1", "Widget", "widgets", namespaced=True)
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        caches = Caches(Client(transport, user_agent="caches-behind"), timings=QUICK)
        view = View(kind, without_managed_fields)
        store = caches.acquire(view)
        async with asyncio.timeout(60):
            await store.synced.wait()
            await caches.tried(view, timeout=60)
        assert dict(caches.behind()) == {kind: False}
        await caches.close()
