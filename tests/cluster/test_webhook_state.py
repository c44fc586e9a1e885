"""What admission handlers know follows the cluster, and is requested only where it must be."""

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from config.resource_manager.webhooks import HighAvailabilityConfig
from devcluster.cluster import Cluster as DevCluster
from kit.controllers import cluster_of
from kit.eventually import soon
from kit.objects import config_map, obj, service
from kit.world import Place, connected
from kube.errors import NotFound
from kube.objects import Key
from kube.resources import NAMESPACES
from kube.runtime.cache import Caches
from kube.runtime.client import Client
from kube.runtime.connection import load_kubeconfig
from kube.runtime.discovery import Discovery
from kube.runtime.transport import Transport
from process.caches import fill
from process.clusters import Cluster
from webhooks.handlers import projected_token_mount, system_components_config
from webhooks.handlers.high_availability_config.cluster import HVPAS_VIEW, ClusterLister, Target
from webhooks.handlers.pod_kube_apiserver_load_balancing import SERVICES_VIEW, Gateways
from webhooks.state import NAMESPACES_VIEW, SharedListers

ZONES = "high-availability-config.resources.gardener.cloud/zones"


class Read:
    """What handlers read."""

    def __init__(self, state: SharedListers, label: str) -> None:
        self.state = state
        self.namespaces = state.lister(NAMESPACES_VIEW)
        self.cluster = ClusterLister(HighAvailabilityConfig(behavior="latest"), state)
        self.hvpas = state.lister(HVPAS_VIEW)
        self.nodes = state.lister(system_components_config.view({label: "true"}))
        self.accounts = projected_token_mount.ServiceAccounts(state)
        self.known_accounts = state.lister(projected_token_mount.VIEW)
        self.gateways = Gateways(state)
        self.services = state.lister(SERVICES_VIEW)


@pytest.fixture
def label() -> str:
    """By which the test's own Nodes are selected."""
    return f"test.example.com/{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def read(cluster: DevCluster, label: str) -> AsyncIterator[Read]:
    async with Transport(load_kubeconfig(cluster.kubeconfig)) as transport:
        client = Client(transport, user_agent=f"webhook-state-{uuid.uuid4().hex}")
        caches = Caches(client)
        real = Cluster(transport=transport, client=client, caches=caches, discovery=Discovery(client), namespaces=())
        state = SharedListers(real, real)
        found = Read(state, label)
        await fill(state.start(), {"source": real}, timeout=60)
        yield found
        await state.close()
        assert list(caches.stores()) == []
        await caches.close()
    # Connections that were just being opened are closed in a later turn of the event loop.
    await asyncio.sleep(0.2)


async def test_annotations_of_namespaces_are_followed(read: Read, cluster: DevCluster, namespace: str) -> None:
    await soon(lambda: read.namespaces.store.get(Key("", namespace)), "the namespace")
    assert (await read.state.namespace(namespace)).annotations == {}
    cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"annotations": {ZONES: "a"}}})
    await soon(
        lambda: (known := read.namespaces.store.get(Key("", namespace))) and known.annotations == {ZONES: "a"},
        "the annotation",
    )
    with pytest.raises(NotFound, match="^namespaces"):
        await read.state.namespace("missing")


async def test_a_namespace_that_the_watch_has_not_brought_is_found(cluster: DevCluster, namespace: str) -> None:
    async with connected(cluster) as client:
        behind = cluster_of(client, behind=[NAMESPACES])
        state = SharedListers(behind, behind)
        await state.start()
        assert (await state.namespace(namespace)).labels["kubernetes.io/metadata.name"] == namespace
        with pytest.raises(NotFound, match="^namespaces"):
            await state.namespace("missing")
        await state.close()
        await behind.caches.close()


async def test_autoscalers_are_found_by_what_they_scale(read: Read, cluster: DevCluster, namespace: str) -> None:
    target = Target(namespace, "apps/v1", "Deployment", "d")
    assert read.cluster.max_replicas(target) is None
    place, reference = Place(cluster, namespace), {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    place.create(obj("HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": reference, "maxReplicas": 4}))
    await soon(lambda: read.cluster.max_replicas(target) == 4, "the HPA")
    place.delete("HorizontalPodAutoscaler", "h")
    await soon(lambda: read.cluster.max_replicas(target) is None, "no HPA")


async def test_tolerations_follow_the_taints_of_selected_nodes(read: Read, cluster: DevCluster, label: str) -> None:
    def keys() -> list[str]:
        return [toleration["key"] for _, tolerations in read.nodes.store.items() for toleration in tolerations]

    assert read.cluster.state_for(Target("default", "apps/v1", "Deployment", "d")).several_nodes
    assert keys() == []
    name = f"tainted-{uuid.uuid4().hex[:12]}"
    taint = {"key": "pool", "value": "x", "effect": "NoSchedule"}
    place = Place(cluster, "")
    place.create(obj("Node", name, labels={label: "true"}, spec={"taints": [taint], "unschedulable": True}))
    try:
        await soon(lambda: keys() == ["pool"], "the taint")
        place.patch("Node", name, {"metadata": {"labels": {label: None}}})
        await soon(lambda: keys() == [], "the Node is not selected any more")
    finally:
        place.delete("Node", name)


async def test_a_service_account_that_is_not_known_yet_is_read_once(
    read: Read, cluster: DevCluster, namespace: str
) -> None:
    place = Place(cluster, namespace)
    place.create(obj("ServiceAccount", "new", automountServiceAccountToken=False))
    assert await read.accounts.automount(namespace, "new") is False
    place.patch("ServiceAccount", "new", {"automountServiceAccountToken": True})
    await soon(lambda: read.known_accounts.store.get(Key(namespace, "new")) is True, "the change")
    assert await read.accounts.automount(namespace, "new") is True
    with pytest.raises(NotFound, match='^serviceaccounts "missing" not found$'):
        await read.accounts.automount(namespace, "missing")


async def test_load_balancing_is_followed(read: Read, cluster: DevCluster, namespace: str) -> None:
    assert read.gateways.configured(namespace) is None
    with pytest.raises(NotFound):
        read.gateways.ips(namespace)
    place, name = Place(cluster, namespace), "istio-ingressgateway-internal"
    data = {"hosts": "api.example.com", "istio-namespace": namespace}
    place.create(config_map("istio-internal-load-balancing", data))
    created = place.create(service(name, ports=[{"port": 9443}]))
    await soon(lambda: read.gateways.configured(namespace) == data, "the ConfigMap")
    ips = tuple(created["spec"]["clusterIPs"])
    assert ips
    await soon(lambda: Key(namespace, name) in dict(read.services.store.items()), "the Service")
    assert read.gateways.ips(namespace) == ips


async def test_a_kind_that_does_not_exist_is_empty_and_holds_up_nothing(read: Read) -> None:
    await soon(read.hvpas.store.synced.is_set, "the list of no Hvpas")
    assert read.cluster.max_replicas(Target("default", "apps/v1", "Deployment", "d")) is None
