"""Overrides of a configuration file by the environment and the command line."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from typing import Any, TypeVar

from process.configuration.blocks import ClientConnection, Configuration, HTTPServer
from process.configuration.checks import HIGHEST_PORT
from process.configuration.errors import ConfigError

C = TypeVar("C", bound=Configuration)
S = TypeVar("S", bound=HTTPServer)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnection:
    """One of a component's clusters, and the place of its connection settings.

    Attributes:
        name: in messages, metrics and probes.
        attribute: of the configuration; a ClientConnection.
        variable: of the environment; its kubeconfig takes precedence over that of the file.
        fallback: cluster whose kubeconfig replaces a missing one; empty for the in-cluster configuration.
        at_start: False if the program connects to it later, such as after it got credentials.
        takes_namespaces: whether a flag adds namespaces to those of the configuration.
    """

    name: str
    attribute: str
    variable: str
    fallback: str = ""
    at_start: bool = True
    takes_namespaces: bool = False

    def configured_in(self, config: Any) -> ClientConnection:
        connection: ClientConnection = getattr(config, self.attribute)
        return connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Values of flags; empty if a flag is not set. Addresses: `host:port`, `:port`, `[IPv6]:port`.

    Attributes: extra_namespaces: by the name of the cluster.
    """

    health_probe_bind_address: str = ""
    metrics_bind_address: str = ""
    extra_namespaces: Mapping[str, Sequence[str]] = field(default_factory=dict)


def namespaces_flag(cluster: str) -> str:
    """Return the flag that adds namespaces to those of a cluster."""
    return f"extra-{cluster}-namespace"


def override(
    config: C, overrides: Overrides, *, clusters: Sequence[ClusterConnection], environment: Mapping[str, str]
) -> C:
    """Return the configuration with flags and environment applied.

    The variables of the clusters, if not empty, replace the kubeconfigs even if the file sets them. Extra namespaces
    are added to those of the file: if it has none (all), only they remain, since a process with extra namespaces may
    not have rights in others. A port of 0 takes any free one.

    Raises:
        ConfigError: an address is invalid, or the program does not have the cluster of extra namespaces.
    """
    errors: list[str] = []
    probes, metrics = overrides.health_probe_bind_address, overrides.metrics_bind_address
    server = replace(
        config.server,
        health_probes=_at("health-probe-bind-address", probes, config.server.health_probes, errors),
        metrics=_at("metrics-bind-address", metrics, config.server.metrics, errors),
    )
    extra = dict(overrides.extra_namespaces)
    connections: dict[str, Any] = {}
    for cluster in clusters:
        connection = cluster.configured_in(config)
        connections[cluster.attribute] = replace(
            connection,
            kubeconfig=environment.get(cluster.variable) or connection.kubeconfig,
            namespaces=tuple(dict.fromkeys((*connection.namespaces, *extra.pop(cluster.name, ())))),
        )
    for cluster_name, namespaces in extra.items():
        if namespaces:
            errors.append(f"--{namespaces_flag(cluster_name)}: this program has no {cluster_name} cluster")
    if errors:
        raise ConfigError(errors)
    return replace(config, server=server, **connections)


def _at(flag: str, address: str, server: S, errors: list[str]) -> S:
    if not address:
        return server
    try:
        host, port = parse_address(address)
    except ValueError as error:
        errors.append(f'invalid argument "{address}" for "--{flag}" flag: {error}')
        return server
    return replace(server, bind_address=host, port=port)


def parse_address(text: str) -> tuple[str, int]:
    """Return host (IPv6 without brackets, empty for all addresses) and port of `host:port`.

    Raises:
        ValueError: the text is invalid.
    """
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError("missing port; write host:port, :port or [IPv6]:port")
    if host.startswith("[") and host.endswith("]"):
        host = str(IPv6Address(host[1:-1]))
    elif ":" in host or "[" in host or "]" in host:
        raise ValueError("write an IPv6 address in brackets, as [::1]:8080")
    if not re.fullmatch("[0-9]{1,5}", port) or int(port) > HIGHEST_PORT:
        raise ValueError(f'port "{port}" is not a number from 0 to {HIGHEST_PORT}')
    return host, int(port)
