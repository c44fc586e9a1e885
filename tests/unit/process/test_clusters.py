"""Whether source and target are one cluster, and what a shared connection is set to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.blocks import ClientConnection
from config.resource_manager import COMPONENT
from config.resource_manager.schema import ResourceManagerConfiguration
from kit import kubeconfigs
from kit.kubeconfigs import written
from kube.connection import Connection, Fixed
from kube.kubeconfig import ConfigurationError
from kube.objects import Object
from process.clusters import Line, lines, merged, same_cluster

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


def lines_of(source: ClientConnection, target: ClientConnection) -> list[Line]:
    config = ResourceManagerConfiguration(source_client_connection=source, target_client_connection=target)
    return lines(COMPONENT.connections(config), environment={})


def test_without_a_kubeconfig_of_its_own_the_target_is_the_source(tmp_path: Path) -> None:
    (both,) = lines_of(connection(tmp_path / "source"), ClientConnection())
    assert both.names == ("source", "target")
    assert both.transport.connection.server == "https://a:443"


def test_a_target_restricted_to_other_namespaces_has_a_connection_and_limits_of_its_own(tmp_path: Path) -> None:
    source = connection(tmp_path / "source", qps=1)
    found = lines_of(source, ClientConnection(namespaces=("kube-system",), qps=2))
    assert [(line.names, line.settings.qps) for line in found] == [(("source",), 1), (("target",), 2)]
    assert found[1].transport.connection.server == "https://a:443"


def test_two_files_that_say_the_same_are_one_cluster(tmp_path: Path) -> None:
    assert len(lines_of(connection(tmp_path / "source"), connection(tmp_path / "target"))) == 1


def test_two_servers_are_two_clusters(tmp_path: Path) -> None:
    found = lines_of(connection(tmp_path / "source"), connection(tmp_path / "target", server="https://b:443"))
    assert [line.transport.connection.server for line in found] == ["https://a:443", "https://b:443"]


def test_a_target_with_an_exec_plugin_is_refused(tmp_path: Path) -> None:
    target = connection(tmp_path / "target", user={"exec": {"command": "touch"}, "token": "eA=="})
    with pytest.raises(ConfigurationError, match=r'^exec configurations are not supported \(user "u"\)'):
        lines_of(connection(tmp_path / "source"), target)
