"""Whether source and target are one cluster, and what a shared connection is set to."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from config.resource_manager import COMPONENT
from config.resource_manager.schema import ResourceManagerConfiguration
from kit import kubeconfigs
from kit.kubeconfigs import written
from kube.objects import Object, resource_version
from kube.resources import CONFIG_MAPS
from kube.runtime.cache import View
from kube.runtime.connection import Connection, Fixed
from kube.runtime.kubeconfig import ConfigurationError
from process.caches import SyncChecks
from process.clusters import Clusters, Endpoint, endpoints, merged, same_cluster
from process.configuration.blocks import ClientConnection

HERE = Connection(server="https://a:443", tls=None, credentials=Fixed(), identity=("https://a:443", "token x", ""))
ELSEWHERE = replace(HERE, server="https://b:443", identity=("https://b:443", "token x", ""))
OTHER_USER = replace(HERE, identity=("https://a:443", "token y", ""))


@pytest.mark.parametrize(
    ("target", "source_namespaces", "target_namespaces", "expected"),
    [
        pytest.param(replace(HERE), (), (), True, id="equal"),
        pytest.param(HERE, ("a", "b"), ("b", "a"), True, id="order of namespaces"),
        pytest.param(HERE, ("a",), (), False, id="one restricted"),
        pytest.param(HERE, ("a",), ("b",), False, id="other namespaces"),
        pytest.param(ELSEWHERE, (), (), False, id="other server"),
        pytest.param(OTHER_USER, (), (), False, id="other user"),
    ],
)
def test_only_the_same_server_user_and_namespaces_make_one_cluster(
    target: Connection, source_namespaces: tuple[str, ...], target_namespaces: tuple[str, ...], expected: bool
) -> None:
    source_settings, target_settings = (ClientConnection(namespaces=n) for n in (source_namespaces, target_namespaces))
    assert same_cluster(HERE, source_settings, target, target_settings) is expected


def test_a_shared_connection_has_the_more_generous_limit_and_the_more_frequent_resync() -> None:
    source = ClientConnection(qps=10, burst=200, cache_resync_period=3600, namespaces=("a",))
    target = ClientConnection(qps=50, burst=20, cache_resync_period=60, namespaces=("a",))
    shared = merged(source, target)
    assert (shared.qps, shared.burst, shared.cache_resync_period, shared.namespaces) == (50, 200, 60, ("a",))


@pytest.mark.parametrize("unlimited", ["source", "target"])
def test_a_shared_connection_is_unlimited_if_one_of_both_is(unlimited: str) -> None:
    limits = {"source": 10.0, "target": 20.0, unlimited: -1.0}
    assert merged(ClientConnection(qps=limits["source"]), ClientConnection(qps=limits["target"])).qps == -1


def connection(
    path: Path, *, server: str = "https://a:443", user: Object | None = None, **more: Any
) -> ClientConnection:
    """By a kubeconfig at this path. Args: more: further settings."""
    file = written(path, kubeconfigs.kubeconfig(user or {"token": "x"}, server=server))
    return ClientConnection(kubeconfig=str(file), **more)


def endpoints_of(source: ClientConnection, target: ClientConnection) -> list[Endpoint]:
    config = ResourceManagerConfiguration(source_client_connection=source, target_client_connection=target)
    return endpoints(COMPONENT.connections(config), environment={})


def test_without_a_kubeconfig_of_its_own_the_target_is_the_source(tmp_path: Path) -> None:
    (both,) = endpoints_of(connection(tmp_path / "source"), ClientConnection())
    assert both.names == ("source", "target")
    assert both.connection.server == "https://a:443"


def test_a_target_restricted_to_other_namespaces_has_a_connection_and_limits_of_its_own(tmp_path: Path) -> None:
    source = connection(tmp_path / "source", qps=1)
    found = endpoints_of(source, ClientConnection(namespaces=("kube-system",), qps=2))
    assert [(each.names, each.settings.qps) for each in found] == [(("source",), 1), (("target",), 2)]
    assert found[1].connection.server == "https://a:443"


def test_two_files_that_state_the_same_are_one_cluster(tmp_path: Path) -> None:
    assert len(endpoints_of(connection(tmp_path / "source"), connection(tmp_path / "target"))) == 1


def test_two_servers_are_two_clusters(tmp_path: Path) -> None:
    found = endpoints_of(connection(tmp_path / "source"), connection(tmp_path / "target", server="https://b:443"))
    assert [each.connection.server for each in found] == ["https://a:443", "https://b:443"]


def test_a_target_with_an_exec_plugin_is_refused(tmp_path: Path) -> None:
    target = connection(tmp_path / "target", user={"exec": {"command": "touch"}, "token": "eA=="})
    with pytest.raises(ConfigurationError, match=r'^exec configurations are not supported \(user "u"\)'):
        endpoints_of(connection(tmp_path / "source"), target)


# --- clusters that come and go


@pytest.fixture
async def clusters() -> AsyncIterator[Clusters]:
    clusters = Clusters(user_agent="test", component="test")
    yield clusters
    await clusters.close_all()


def shoot(*names: str, connection: Connection = ELSEWHERE) -> Endpoint:
    return Endpoint(names or ("shoot",), connection, ClientConnection())


async def test_who_subscribes_hears_of_each_cluster_that_comes_or_goes(clusters: Clusters) -> None:
    heard: list[list[str]] = []
    unsubscribe = clusters.subscribe(lambda: heard.append(list(clusters)))
    clusters.open(shoot("a", "b"))
    clusters.open(shoot("c"))
    assert clusters["a"] is clusters["b"]
    await clusters.close("b")
    assert heard == [["a", "b"], ["a", "b", "c"], ["c"]]
    unsubscribe()
    await clusters.close("c")
    assert len(heard) == 3


async def test_a_name_stands_for_one_cluster(clusters: Clusters) -> None:
    clusters.open(shoot("a"))
    with pytest.raises(ValueError, match="cluster a already exists; close it first"):
        clusters.open(shoot("b", "a"))
    assert list(clusters) == ["a"]
    await clusters.close("a")
    clusters.open(shoot("b", "a"))


async def test_all_of_a_cluster_goes_on_with_credentials_that_are_replaced(clusters: Clusters) -> None:
    opened = clusters.open(shoot())
    clusters.replace("shoot", replace(ELSEWHERE, credentials=Fixed("Bearer new")))
    assert clusters["shoot"] is opened
    assert await opened.client.transport.connection.credentials.authorization() == "Bearer new"
    with pytest.raises(ConfigurationError):
        clusters.replace("shoot", HERE)
    assert await opened.client.transport.connection.credentials.authorization() == "Bearer new"


def series_of(host: str) -> list[str]:
    return [
        sample.name
        for family in REGISTRY.collect()
        for sample in family.samples
        if sample.name.startswith("rest_client") and sample.labels.get("host") == host
    ]


async def test_metrics_of_an_api_server_go_with_the_last_connection_to_it(clusters: Clusters) -> None:
    for name in ("a", "b"):
        clusters.open(shoot(name, connection=replace(HERE, server="https://gone:1")))
    await clusters.close("a")
    assert series_of("gone:1")
    await clusters.close("b")
    assert series_of("gone:1") == []


async def test_readiness_has_a_check_for_each_cluster_that_something_is_needed_of(clusters: Clusters) -> None:
    def names(*configured: str) -> list[str]:
        return [check.name for check in SyncChecks(clusters, configured=configured)()]

    clusters.open(shoot("seed", connection=HERE))
    clusters.open(shoot())
    assert names("seed") == ["informer-sync"]
    assert names("seed", "garden") == ["seed-informer-sync"]
    clusters["shoot"].caches.acquire(View(CONFIG_MAPS, resource_version), needed_at_start=True)
    assert names("seed", "garden") == ["seed-informer-sync", "shoot-informer-sync"]
    await clusters.close("shoot")
    assert names("seed", "garden") == ["seed-informer-sync"]


def test_a_cluster_that_is_not_there_at_the_start_is_not_connected_then() -> None:
    source, target = COMPONENT.clusters
    late = replace(COMPONENT, clusters=(source, replace(target, at_start=False)))
    assert list(late.connections(ResourceManagerConfiguration())) == ["source"]
