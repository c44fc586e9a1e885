"""Configuration file of an extension, the same for all: its own settings are in `providerConfig` of its objects."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from process.configuration.blocks import (
    CacheSyncTimeout,
    ClientConnection,
    ElectingConfiguration,
    HTTPServer,
    LeaderElection,
    Server,
)
from process.configuration.checks import at_least, lasts_at_least, longer_than_zero
from process.configuration.component import Component
from process.configuration.fields import Duration, setting
from process.configuration.overrides import ClusterConnection

SEED = "seed"
"""Name of the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    concurrent_syncs: Annotated[
        int, setting("Number of objects of a kind that are processed at once.", at_least(1))
    ] = 5
    health_check_period: Annotated[
        Duration, setting("Time between two health checks of an object.", longer_than_zero)
    ] = 30.0
    heartbeat_period: Annotated[Duration, setting("Time between two renewals of the heartbeat.", lasts_at_least(1))] = (
        30.0
    )


@dataclass(frozen=True, kw_only=True)
class _Connections:
    seed_client_connection: Annotated[ClientConnection, setting("Connection to the seed cluster.")] = field(
        default_factory=ClientConnection
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionConfiguration(ElectingConfiguration, _Connections):
    leader_election: Annotated[
        LeaderElection,
        setting("Leader election, by a Lease in the namespace of the extension; its heartbeat is there, too."),
    ] = field(default_factory=partial(LeaderElection, resource_name="gardener-extension-leader-election"))
    server: Annotated[Server, setting("Servers of the program.")] = field(
        default_factory=partial(Server, health_probes=HTTPServer(port=8081), metrics=HTTPServer(port=8080))
    )
    controllers: Annotated[Controllers, setting("Controllers of the extension.")] = Controllers()


def component(name: str) -> Component[ExtensionConfiguration]:
    """Return the component of an extension with this name."""
    return Component(
        name=name,
        metrics_prefix="gardener_extension",
        api_version="extension.config.gardener.cloud/v1alpha1",
        kind="ExtensionConfiguration",
        clusters=(ClusterConnection(name=SEED, attribute="seed_client_connection", variable="KUBECONFIG"),),
        configuration=lambda: ExtensionConfiguration,
    )
