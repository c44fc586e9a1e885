"""All fields of the local provider's configuration file."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from config.shared import workers
from process.configuration.blocks import (
    CacheSyncTimeout,
    ClientConnection,
    ElectingConfiguration,
    HTTPServer,
    LeaderElection,
    Server,
)
from process.configuration.checks import required_value
from process.configuration.fields import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Controllers:
    cache_sync_timeout: CacheSyncTimeout = 120.0
    concurrent_syncs: Annotated[int, workers()] = 10


@dataclass(frozen=True, kw_only=True)
class _Connections:
    seed_client_connection: Annotated[ClientConnection, setting("Connection to the seed cluster.")] = field(
        default_factory=partial(ClientConnection, qps=100.0, burst=200)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalProviderConfiguration(ElectingConfiguration, _Connections):
    leader_election: Annotated[LeaderElection, setting("Leader election, by a Lease in the seed cluster.")] = field(
        default_factory=partial(LeaderElection, resource_name="local-provider", resource_namespace="garden")
    )
    server: Annotated[Server, setting("Servers of the program.")] = field(
        default_factory=partial(Server, health_probes=HTTPServer(port=2738), metrics=HTTPServer(port=2739))
    )
    state_dir: Annotated[
        str, setting("Local directory for the data of the provider: networks and buckets.", required_value())
    ] = ""
    buckets_dir: Annotated[
        str,
        setting(
            "Local directory for buckets. Providers of several seeds can share it, so that Shoots can move "
            "between these seeds. Empty: a subdirectory of `stateDir`."
        ),
    ] = ""
    controllers: Annotated[Controllers, setting("Extension controllers.")] = Controllers()
    seed_is_shoot: Annotated[
        bool,
        setting(
            "Whether the seed is a Shoot of a local provider. If true, this provider runs the pods of the "
            "seed, and Shoots on this seed cannot become seeds."
        ),
    ] = False
