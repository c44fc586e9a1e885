"""What admission handlers know follows the cluster, and is asked for only where it must be."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from config.schema import ResourceManagerConfiguration
from config.schema_webhooks import (
    HighAvailabilityConfig,
    ProjectedTokenMount,
    SystemComponentsConfig,
    Webhook,
    Webhooks,
)
from devcluster.cluster import Cluster as DevCluster
from kube.cache import Caches
from kube.client import Client, Transport
from kube.connection import load_kubeconfig
from kube.discovery import Discovery
from kube.errors import NotFound
from kube.objects import Key
from process.caches import by_name, fill
from process.clusters import Cluster
from webhooks.facts import Facts, Target

ZONES = "high-availability-config.resources.gardener.cloud/zones"


@pytest.fixture
def label() -> str:
    """By which the test's own Nodes are selected."""
    return f"test.example.com/{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def facts(cluster: DevCluster, label: str) -> AsyncIterator[Facts]:
    webhooks = Webhooks(
        high_availability_config=HighAvailabilityConfig(enabled=True, behavior="latest"),
        projected_token_mount=ProjectedTokenMount(enabled=True),
        system_components_config=SystemComponentsConfig(enabled=True, node_selector={label: "true"}),
        pod_kube_apiserver_load_balancing=Webhook(enabled=True),
    )
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent=f"webhook-facts-{uuid.uuid4().hex}")
        caches = Caches(client)
        real = Cluster(transport=transport, client=client, caches=caches, discovery=Discovery(client), namespaces=())
        facts = Facts(ResourceManagerConfiguration(webhooks=webhooks), real, real)
        await fill(facts.start(), by_name(real, real), timeout=60)
        yield facts
        await facts.close()
        assert list(caches.stores()) == []
        await caches.close()
    # Connections that were just being opened are closed in a later turn of the event loop.
    await asyncio.sleep(0.2)


async def until(what: str, holds: Callable[[], object], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        await asyncio.sleep(0.02)


async def test_annotations_of_namespaces_are_followed(facts: Facts, cluster: DevCluster, namespace: str) -> None:
    await until("the namespace", lambda: facts._namespaces.get(Key("", namespace)))
    assert (await facts.namespace(namespace)).annotations == {}
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": {ZONES: "a"}}})
    await until("the annotation", lambda: facts._namespaces.get(Key("", namespace)).annotations == {ZONES: "a"})
    with pytest.raises(NotFound, match="^namespaces"):
        await facts.namespace("missing")


async def test_autoscalers_are_found_by_what_they_scale(facts: Facts, cluster: DevCluster, namespace: str) -> None:
    target = Target(namespace, "apps/v1", "Deployment", "d")
    assert facts.max_replicas(target) is None
    path = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers"
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    cluster.api.create(path, {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": reference, "maxReplicas": 4}})
    await until("the HPA", lambda: facts.max_replicas(target) == 4)
    cluster.api.delete(f"{path}/h")
    await until("no HPA", lambda: facts.max_replicas(target) is None)


async def test_tolerations_follow_the_taints_of_selected_nodes(facts: Facts, cluster: DevCluster, label: str) -> None:
    def keys() -> list[str]:
        return [toleration.key for toleration in facts.node_tolerations()]

    assert facts.several_nodes()
    assert keys() == []
    name = f"tainted-{uuid.uuid4().hex[:12]}"
    taint = {"key": "pool", "value": "x", "effect": "NoSchedule"}
    node: Any = {
        "metadata": {"name": name, "labels": {label: "true"}},
        "spec": {"taints": [taint], "unschedulable": True},
    }
    cluster.api.create("/api/v1/nodes", node)
    try:
        await until("the taint", lambda: keys() == ["pool"])
        cluster.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {label: None}}})
        await until("the Node is not selected any more", lambda: keys() == [])
    finally:
        cluster.api.delete(f"/api/v1/nodes/{name}")


async def test_a_service_account_that_is_not_known_yet_is_read_once(
    facts: Facts, cluster: DevCluster, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    cluster.api.create(path, {"metadata": {"name": "new"}, "automountServiceAccountToken": False})
    assert await facts.automounts(namespace, "new") is False
    cluster.api.patch(f"{path}/new", {"automountServiceAccountToken": True})
    await until("the change", lambda: facts._service_accounts.get(Key(namespace, "new")) is True)
    assert await facts.automounts(namespace, "new") is True
    with pytest.raises(NotFound, match='^serviceaccounts "missing" not found$'):
        await facts.automounts(namespace, "missing")


async def test_load_balancing_is_followed(facts: Facts, cluster: DevCluster, namespace: str) -> None:
    assert facts.load_balancing(namespace) is None
    with pytest.raises(NotFound):
        facts.gateway_ips(namespace)
    metadata = {"name": "istio-internal-load-balancing"}
    data = {"hosts": "api.example.com", "istio-namespace": namespace}
    cluster.api.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": metadata, "data": data})
    service = {"metadata": {"name": "istio-ingressgateway-internal"}, "spec": {"ports": [{"port": 9443}]}}
    created = cluster.api.create(f"/api/v1/namespaces/{namespace}/services", service)
    await until("the ConfigMap", lambda: facts.load_balancing(namespace) == data)
    ips = tuple(created["spec"]["clusterIPs"])
    assert ips
    await until("the Service", lambda: Key(namespace, service["metadata"]["name"]) in dict(facts._services.items()))
    assert facts.gateway_ips(namespace) == ips


async def test_a_kind_that_does_not_exist_is_empty_and_holds_up_nothing(facts: Facts) -> None:
    await until("the list of no Hvpas", facts._hvpas.synced.is_set)
    assert facts.max_replicas(Target("default", "apps/v1", "Deployment", "d")) is None
