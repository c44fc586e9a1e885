"""What the environment and the command line change in a configuration that was read from a file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import TypeVar

from config.checks import HIGHEST_PORT
from config.errors import ConfigError
from config.schema import ClientConnection, HealthProbeServer, MetricsServer, ResourceManagerConfiguration

S = TypeVar("S", HealthProbeServer, MetricsServer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Values of flags; empty where a flag is not given. Addresses: `host:port`, `:port`, `[IPv6]:port`."""

    health_probe_bind_address: str = ""
    metrics_bind_address: str = ""
    extra_target_namespaces: tuple[str, ...] = ()


def override(
    config: ResourceManagerConfiguration, overrides: Overrides, *, environment: Mapping[str, str]
) -> ResourceManagerConfiguration:
    """The configuration with flags and environment applied.

    KUBECONFIG and TARGET_KUBECONFIG, if not empty, replace the kubeconfigs even when the file sets them.
    Extra target namespaces are added to those of the file: where that has none (all), only they are left,
    since a process that is given them may not be allowed to see others. A port of 0 takes any free one.

    Raises:
        ConfigError: for a malformed address.
    """
    errors: list[str] = []
    probes, metrics = overrides.health_probe_bind_address, overrides.metrics_bind_address
    server = replace(
        config.server,
        health_probes=_at("health-probe-bind-address", probes, config.server.health_probes, errors),
        metrics=_at("metrics-bind-address", metrics, config.server.metrics, errors),
    )
    if errors:
        raise ConfigError(errors)
    source = _with_kubeconfig(config.source_client_connection, environment.get("KUBECONFIG", ""))
    target = _with_kubeconfig(config.target_client_connection, environment.get("TARGET_KUBECONFIG", ""))
    namespaces = tuple(dict.fromkeys((*target.namespaces, *overrides.extra_target_namespaces)))
    return replace(
        config,
        source_client_connection=source,
        target_client_connection=replace(target, namespaces=namespaces),
        server=server,
    )


def _with_kubeconfig(connection: ClientConnection, kubeconfig: str) -> ClientConnection:
    return replace(connection, kubeconfig=kubeconfig) if kubeconfig else connection


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
    """Host (IPv6 without brackets, empty for all addresses) and port of `host:port`. Raises ValueError."""
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
