"""When a cache reports that it may lack what is in the cluster."""

import asyncio
import uuid
from contextlib import closing

import pytest

from devcluster.cluster import Cluster
from kit.eventually import soon
from kit.kinds import custom_resource
from kit.objects import rule
from kit.rbac import grant
from kit.world import connected
from kube.resources import CONFIG_MAPS, SECRETS
from kube.runtime.cache import Caches, View, without_managed_fields
from kube.runtime.client import Client
from kube.runtime.discovery import Discovery
from kube.runtime.watch import Timings
from process.caches import RefusalCollector
from process.clusters import Cluster as Connected

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


async def test_what_a_program_can_do_without_is_not_requested_again_after_a_refusal(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One request, one line in the log, one metric; with new credentials it is tried again."""
    user, view = f"reader-{uuid.uuid4().hex[:8]}", View(CONFIG_MAPS, without_managed_fields, is_optional=True)
    with closing(cluster.audit()) as audit:
        async with connected(cluster.kubeconfig_for(user), user) as client:
            caches = Caches(client, namespaces=[namespace], timings=QUICK)
            optional = caches.acquire(view)
            needed = caches.acquire(View(SECRETS, without_managed_fields))
            shared = Connected(
                transport=client.transport, client=client, caches=caches, discovery=Discovery(client), namespaces=()
            )
            await soon(lambda: caches.refused() == {CONFIG_MAPS}, "the refusal to be noted")

            def is_retried() -> bool:
                return audit.count(user_agent=user)["list", "secrets"] > 3

            await soon(is_retried, "what is needed to be requested again")
            assert audit.count(user_agent=user)["list", "configmaps"] == 1
            assert dict(caches.behind()) == {CONFIG_MAPS: False, SECRETS: True}
            (family,) = RefusalCollector({"garden": shared}, prefix="p").collect()
            assert [(each.labels["resource"], each.value) for each in family.samples] == [(str(CONFIG_MAPS), 1)]
            assert capsys.readouterr().out.count("Reading objects is forbidden; working without them") == 1
            await asyncio.to_thread(grant, cluster, user, rule("", "configmaps", "list watch"), namespace=namespace)
            caches.wake()
            await optional.synced.wait()
            assert not needed.synced.is_set()
            assert caches.refused() == set()
            await caches.close()


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
