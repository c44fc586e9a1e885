"""All fields of the resource manager's configuration file: name, type, default, rules and effect.

The names in the file are the attributes in camel case; times are seconds here and Go durations there. Rules of a block
with a switch only hold while it is on, unless marked otherwise; rules between fields are its method `errors`. All
fields appear in the reference of docs/configuration.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from config.resource_manager.controllers import Controllers
from config.resource_manager.webhooks import Webhooks
from kube.validation import FieldError, forbidden
from process.configuration import blocks
from process.configuration.blocks import ClientConnection, ElectingConfiguration, HTTPServer, LeaderElection, TLSServer
from process.configuration.checks import at_least, port
from process.configuration.fields import setting

OptionalPort = Annotated[int, setting("Port to listen on; 0: disabled.", port)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsServer(HTTPServer):
    managed_resource_series_limit: Annotated[
        int,
        setting(
            "Maximum number of ManagedResources with their own metrics; others only count in sums.",
            at_least(0, "must be non-negative"),
        ),
    ] = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPageServer:
    bind_address: Annotated[
        str, setting("Address to listen on, IPv6 without brackets. The page has no authentication.", zero_is_unset=True)
    ] = "127.0.0.1"
    port: OptionalPort = 0


@dataclass(frozen=True, kw_only=True)
class _Webhooks:
    webhooks: Annotated[TLSServer, setting("HTTPS server of the webhooks.")] = field(
        default_factory=partial(TLSServer, port=9449)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server(blocks.Server, _Webhooks):
    health_probes: Annotated[HTTPServer, setting("HTTP server of `/healthz` and `/readyz`.")] = field(
        default_factory=partial(HTTPServer, port=8081)
    )
    metrics: Annotated[MetricsServer, setting("HTTP server of `/metrics`.")] = field(
        default_factory=partial(MetricsServer, port=8080)
    )
    status_page: Annotated[StatusPageServer, setting("HTTP server of the [status page](status-page.md).")] = field(
        default_factory=StatusPageServer
    )


@dataclass(frozen=True, kw_only=True)
class _Connections:
    source_client_connection: Annotated[
        ClientConnection, setting("Connection to the cluster with ManagedResources, their Secrets and the Lease.")
    ] = field(default_factory=ClientConnection)
    target_client_connection: Annotated[
        ClientConnection, setting("Connection to the cluster that receives the objects.")
    ] = field(default_factory=ClientConnection)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceManagerConfiguration(ElectingConfiguration, _Connections):
    leader_election: Annotated[
        LeaderElection, setting("Leader election of the controllers, by a Lease in the source cluster.")
    ] = field(default_factory=partial(LeaderElection, resource_name="gardener-resource-manager"))
    server: Annotated[Server, setting("Servers of the programs.")] = field(default_factory=Server)
    controllers: Annotated[Controllers, setting("Controllers of the program.")] = field(default_factory=Controllers)
    webhooks: Annotated[Webhooks, setting("Admission and authorization webhooks.")] = field(default_factory=Webhooks)

    def errors(self, _path: str) -> Iterator[FieldError]:
        if self.controllers.token_invalidator.enabled != self.webhooks.token_invalidator.enabled:
            detail = "controller and webhook for TokenInvalidator must either be both disabled or enabled"
            yield forbidden("controllers.tokenInvalidator", detail)
