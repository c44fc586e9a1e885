"""What environment and flags change."""

from dataclasses import replace
from functools import partial

import pytest

from config.resource_manager import COMPONENT, decode
from config.resource_manager.schema import ResourceManagerConfiguration
from process.configuration import overrides
from process.configuration.component import validate
from process.configuration.errors import ConfigError
from process.configuration.overrides import Overrides, parse_address

override = partial(overrides.override, clusters=COMPONENT.clusters)

FILE = decode("""
    sourceClientConnection: {kubeconfig: /source}
    targetClientConnection: {kubeconfig: /target, namespaces: [a, b]}
    leaderElection: {resourceNamespace: garden}
    server: {healthProbes: {bindAddress: 10.0.0.1, port: 1}, metrics: {bindAddress: 10.0.0.1, port: 2}}
""").config


def test_the_environment_replaces_the_kubeconfigs_of_the_file() -> None:
    config = override(FILE, Overrides(), environment={"KUBECONFIG": "/s", "TARGET_KUBECONFIG": "/t", "HOME": "/"})
    assert config.source_client_connection.kubeconfig == "/s"
    assert config.target_client_connection.kubeconfig == "/t"
    assert config.target_client_connection.namespaces == ("a", "b")


@pytest.mark.parametrize("environment", [{}, {"KUBECONFIG": "", "TARGET_KUBECONFIG": ""}])
def test_an_empty_variable_changes_nothing(environment: dict[str, str]) -> None:
    assert override(FILE, Overrides(), environment=environment) == FILE


def test_each_variable_is_for_its_own_connection() -> None:
    config = override(ResourceManagerConfiguration(), Overrides(), environment={"KUBECONFIG": "/s"})
    assert config.target_client_connection.kubeconfig == ""


def test_address_flags_replace_address_and_port_of_the_file() -> None:
    flags = Overrides(health_probe_bind_address="127.0.0.1:7", metrics_bind_address=":8")
    server = override(FILE, flags, environment={}).server
    assert (server.health_probes.bind_address, server.health_probes.port) == ("127.0.0.1", 7)
    assert (server.metrics.bind_address, server.metrics.port) == ("", 8)
    assert server.webhooks == FILE.server.webhooks
    assert server.metrics.managed_resource_series_limit == 1000


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:80", ("localhost", 80)),
        (":8080", ("", 8080)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::]:0", ("::", 0)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)
def test_addresses_are_read_as_host_and_port(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((text, "missing port; write host:port, :port or [IPv6]:port") for text in ("8080", "localhost")),
        *(
            (text, "write an IPv6 address in brackets, as [::1]:8080")
            for text in ("::1:80", "[::1:80", "[::1]", "[::1")
        ),
        (":", 'port "" is not a number from 0 to 65535'),
        *(
            (f"a:{it}", f'port "{it}" is not a number from 0 to 65535')
            for it in ("http", "-1", "65536", "9" * 9, "8\n")
        ),
        ("[localhost]:80", "At least 3 parts expected in 'localhost'"),
    ],
)
def test_a_malformed_address_is_an_error_that_names_flag_and_reason(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override(FILE, Overrides(metrics_bind_address=text), environment={})
    assert str(caught.value) == f'invalid argument "{text}" for "--metrics-bind-address" flag: {reason}'


def test_malformed_addresses_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        override(FILE, Overrides(metrics_bind_address="x", health_probe_bind_address="y"), environment={})
    assert [error.split()[4] for error in caught.value.errors] == ['"--health-probe-bind-address"', '"--metrics-bind-address"']  # fmt: skip


def test_extra_target_namespaces_are_added_once() -> None:
    config = override(FILE, Overrides(extra_namespaces={"target": ("c", "a", "c")}), environment={})
    assert config.target_client_connection.namespaces == ("a", "b", "c")
    assert config.source_client_connection == FILE.source_client_connection


def test_extra_target_namespaces_are_refused_where_there_is_no_target() -> None:
    with pytest.raises(ConfigError, match="--extra-target-namespace: this program has no target cluster"):
        override(FILE, Overrides(extra_namespaces={"target": ("c",)}), clusters=COMPONENT.clusters[:1], environment={})


def test_an_extra_target_namespace_works_without_a_target_connection_in_the_file() -> None:
    config = override(ResourceManagerConfiguration(), Overrides(extra_namespaces={"target": ("x",)}), environment={})
    assert config.target_client_connection.namespaces == ("x",)


def test_overrides_are_validated_like_the_file() -> None:
    flags = Overrides(extra_namespaces={"target": ("X",)}, metrics_bind_address="10.0.0.1:1")
    paths = [error.path for error in validate(override(FILE, flags, environment={}))]
    assert paths == ["targetClientConnection.namespaces[2]", "server.metrics.port"]


def test_any_free_port_may_be_requested_twice() -> None:
    flags = Overrides(health_probe_bind_address="127.0.0.1:0", metrics_bind_address="127.0.0.1:0")
    assert list(validate(override(FILE, flags, environment={}))) == []


def test_overriding_leaves_the_configuration_itself_unchanged() -> None:
    before = replace(FILE)
    override(FILE, Overrides(metrics_bind_address=":1"), environment={"KUBECONFIG": "/x"})
    assert before == FILE
