"""Another program on the same frame: a kind, a Lease, a cluster and names of its own."""

import base64
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from devcluster.audit import Audit
from devcluster.cluster import Cluster
from kit.eventually import eventually, soon
from kit.objects import rule
from kit.processes.agent import AgentProcess, configuration
from kit.rbac import grant, until_granted
from kube.objects import Object, resource_version
from kube.resources import CONFIG_MAPS, NAMESPACES
from kube.runtime.cache import View
from kube.runtime.connection import load_kubeconfig
from process.caches import CacheCollector
from process.clusters import Clusters, Endpoint
from process.configuration.blocks import ClientConnection


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


def test_it_elects_works_and_reports_under_names_of_its_own(cluster: Cluster, namespace: str, greeter: Greeter) -> None:
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


# --- clusters that come, get other credentials, and go


async def test_a_cluster_comes_and_goes_while_others_stay(cluster: Cluster, namespace: str) -> None:
    settings, connection = ClientConnection(), load_kubeconfig(cluster.kubeconfig)
    clusters, registry = Clusters(user_agent="test", component="test"), CollectorRegistry()
    clusters.open(Endpoint(("garden",), connection, settings))
    registry.register(CacheCollector(clusters, prefix="p"))

    shoot = clusters.open(Endpoint(("shoot--a--b",), connection, settings))
    view = View(CONFIG_MAPS, resource_version)
    store = shoot.caches.acquire(view)
    labels = {"connection": "shoot--a--b", "resource": str(CONFIG_MAPS)}
    await soon(store.synced.is_set)
    await soon(lambda: registry.get_sample_value("p_cache_behind", labels) == 0)

    await clusters.close("shoot--a--b")
    await shoot.caches.release(view)
    assert list(clusters) == ["garden"]
    assert registry.get_sample_value("p_cache_behind", labels) is None
    assert await clusters["garden"].client.get(NAMESPACES, namespace)
    await clusters.close_all()
    assert not clusters


@pytest.fixture
def shoot(cluster: Cluster, namespace: str) -> str:
    """A namespace of the same API server, which another cluster is restricted to."""
    name = f"{namespace}-shoot"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def kubeconfig_for(cluster: Cluster, user: str, *rules: Object, namespace: str) -> Path:
    grant(cluster, user, *rules, namespace=namespace)
    until_granted(cluster, user, "watch", "configmaps", namespace=namespace)
    return cluster.kubeconfig_for(user)


def greet(cluster: Cluster, namespace: str, name: str) -> None:
    """Have a ConfigMap, which gets a greeting."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.api.create(path, {"metadata": {"name": name, "labels": {"example.com/greet": ""}}})
    eventually(lambda: cluster.api.get(f"{path}/{name}").get("data") == {"greeting": "good morning"}, "a greeting")


def _holds(users: Callable[[], set[str]], user: str) -> bool:
    return user in users()


def users(audit: Audit, namespace: str, *, since: int, verb: str, resource: str = "configmaps") -> set[str]:
    calls = audit.calls(since=since, namespace=namespace, verbs=[verb], watches=True, leases=True)
    return {call.user for call in calls if call.resource == resource and call.status < 400}


def test_a_cluster_comes_is_given_other_credentials_and_goes_while_the_process_runs(
    cluster: Cluster, namespace: str, shoot: str, audit: Audit
) -> None:
    first, second = f"first-{namespace}", f"second-{namespace}"
    rights = rule("", "configmaps", "list watch patch"), rule("", "events", "create patch")
    kubeconfigs = {
        user: kubeconfig_for(cluster, user, *rights, namespace=shoot).read_bytes() for user in (first, second)
    }
    secrets, behind = f"/api/v1/namespaces/{namespace}/secrets", 'greeter_cache_behind{connection="shoot",resource='
    configuration = {**own_configuration(namespace), "shootConnection": {"namespaces": [shoot]}}
    with Greeter(configuration, kubeconfig=cluster.kubeconfig) as greeter:
        greeter.wait_until_leading()
        assert greeter.probe("/readyz/shoot-informer-sync")[0] == 404
        assert not [series for series in greeter.metrics() if series.startswith(behind)]

        def data(user: str) -> Object:
            return {"data": {"kubeconfig": base64.b64encode(kubeconfigs[user]).decode()}}

        labels = {"example.com/kubeconfig": ""}
        cluster.api.create(secrets, {"metadata": {"name": "shoot", "labels": labels}, **data(first)})
        greet(cluster, shoot, "one")
        assert greeter.probe("/readyz/shoot-informer-sync") == (200, "ok")
        assert greeter.metric(f'{behind}"configmaps.v1"}}') == 0
        eventually(lambda: users(audit, shoot, since=0, verb="create", resource="events") == {first}, "an Event")

        mark = audit.mark()
        cluster.api.patch(f"{secrets}/shoot", data(second))
        eventually(lambda: users(audit, shoot, since=mark, verb="watch") == {second}, "the watch to begin again")
        greet(cluster, shoot, "two")
        assert users(audit, shoot, since=mark, verb="patch") == {second}
        assert users(audit, shoot, since=mark, verb="list") <= {second}
        eventually(lambda: users(audit, shoot, since=mark, verb="create", resource="events") == {second}, "an Event")
        assert greeter.probe("/readyz") == (200, "ok")

        cluster.api.delete(f"{secrets}/shoot")
        eventually(lambda: greeter.probe("/readyz/shoot-informer-sync")[0] == 404, "the cluster to be gone")
        assert not [series for series in greeter.metrics() if series.startswith(behind)]
        greet(cluster, namespace, "three")
        assert greeter.probe("/readyz") == (200, "ok")
    assert greeter.exit_code == 0


def test_a_certificate_that_is_replaced_is_used_by_caches_client_and_election(
    cluster: Cluster, namespace: str, audit: Audit, tmp_path: Path
) -> None:
    first, second = f"first-{namespace}", f"second-{namespace}"
    rights = (
        rule("", "configmaps", "list watch patch"),
        rule("", "secrets", "list watch"),
        rule("", "events", "create patch"),
        rule("coordination.k8s.io", "leases", "get list watch create update"),
    )
    kubeconfigs = {user: kubeconfig_for(cluster, user, *rights, namespace=namespace) for user in (first, second)}
    file = tmp_path / "kubeconfig"
    file.write_bytes(kubeconfigs[first].read_bytes())
    with Greeter(own_configuration(namespace), kubeconfig=file) as greeter:
        greeter.wait_until_leading()
        greet(cluster, namespace, "one")
        mark = audit.mark()
        file.write_bytes(kubeconfigs[second].read_bytes())
        for verb, resource in (("watch", "configmaps"), ("watch", "secrets"), ("update", "leases")):
            seen = partial(users, audit, namespace, since=mark, verb=verb, resource=resource)
            eventually(partial(_holds, seen, second), f"{verb} {resource} with the new certificate")
        mark = audit.mark()
        greet(cluster, namespace, "two")
        for verb, resource in (("patch", "configmaps"), ("update", "leases")):
            seen = partial(users, audit, namespace, since=mark, verb=verb, resource=resource)
            eventually(partial(_holds, seen, second), f"{verb} {resource} with the new certificate")
            assert first not in seen()
        assert greeter.metric("leader_election_master_status") == 1
