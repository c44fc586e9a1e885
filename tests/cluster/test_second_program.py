"""Another program on the same frame: a kind, a Lease, a cluster and names of its own."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from config.blocks import ClientConnection
from devcluster.cluster import Cluster
from kit.eventually import eventually, soon
from kit.processes.agent import AgentProcess, configuration
from kube.cache import View
from kube.objects import resource_version
from kube.resources import CONFIG_MAPS, NAMESPACES
from process.caches import CacheCollector
from process.clusters import Clusters, Line, lines


class Greeter(AgentProcess):
    program = "tests.kit.processes.second_program"


def own_configuration(namespace: str) -> dict[str, Any]:
    of_the_agent = configuration(namespace)
    return {
        "apiVersion": "greeter.example.com/v1alpha1",
        "kind": "GreeterConfiguration",
        "clientConnection": {"namespaces": [namespace]},
        "leaderElection": of_the_agent["leaderElection"],
        "controllers": {"greeting": "good morning"},
    }


@pytest.fixture
def greeter(cluster: Cluster, namespace: str) -> Iterator[Greeter]:
    with Greeter(own_configuration(namespace), kubeconfig=cluster.kubeconfig) as started:
        yield started.wait_until_leading()


def test_it_elects_works_and_tells_under_names_of_its_own(cluster: Cluster, namespace: str, greeter: Greeter) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.api.create(path, {"metadata": {"name": "greeted", "labels": {"example.com/greet": ""}}})
    eventually(lambda: cluster.api.get(f"{path}/greeted").get("data") == {"greeting": "good morning"}, "a greeting")

    lease = cluster.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/greeter-leader-election")
    assert lease["spec"]["holderIdentity"]
    events = cluster.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    assert {event["source"]["component"] for event in events if event["reason"] == "LeaderElection"} <= {"greeter"}
    greeter.wait_for_log("Starting greeter")
    assert greeter.probe("/readyz/informer-sync") == (200, "ok")
    assert greeter.probe("/readyz/source-informer-sync")[0] == 404

    names = {series.partition("{")[0] for series in greeter.metrics()}
    assert {"greeter_build_info", "greeter_config_hash", "greeter_memory_limit_bytes", "greeter_cache_behind"} <= names
    assert not [name for name in names if name.startswith("resource_manager")]
    assert greeter.metric('greeter_cache_behind{connection="garden",resource="configmaps.v1"}') == 0


def test_the_file_of_another_program_is_refused(cluster: Cluster, namespace: str) -> None:
    with Greeter(configuration(namespace), kubeconfig=cluster.kubeconfig) as started:
        assert started.wait() == 1
        assert "expected apiVersion greeter.example.com/v1alpha1 and kind GreeterConfiguration" in started.output


async def test_a_cluster_comes_and_goes_while_others_stay(cluster: Cluster, namespace: str) -> None:
    settings = ClientConnection(kubeconfig=str(cluster.kubeconfig))
    (garden,) = lines({"garden": settings}, environment={})
    clusters, registry = Clusters(user_agent="test"), CollectorRegistry()
    clusters.connect(garden)
    registry.register(CacheCollector(clusters, prefix="p"))

    shoot = clusters.connect(Line.to(garden.transport.connection, settings, "shoot--a--b"))
    view = View(CONFIG_MAPS, resource_version)
    store = shoot.caches.acquire(view)
    labels = {"connection": "shoot--a--b", "resource": str(CONFIG_MAPS)}
    await soon(store.synced.is_set)
    await soon(lambda: registry.get_sample_value("p_cache_behind", labels) == 0)

    await shoot.caches.release(view)
    await clusters.disconnect("shoot--a--b")
    assert list(clusters) == ["garden"]
    assert registry.get_sample_value("p_cache_behind", labels) is None
    assert await clusters["garden"].client.get(NAMESPACES, namespace)
    await clusters.close()
    assert not clusters
