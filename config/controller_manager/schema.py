"""Every field of the controller manager's configuration file, but for those of its controllers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from config.blocks import (
    ClientConnection,
    Debugging,
    GracefulShutdownTimeout,
    HTTPServer,
    LeaderElection,
    LogFormat,
    LogLevel,
    Tracing,
)
from config.checks import distinct_ports
from config.controller_manager.controllers import Controllers
from config.fields import setting
from kube.validation import FieldError


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    health_probes: Annotated[HTTPServer, setting("HTTP server of `/healthz` and `/readyz`.")] = field(
        default_factory=partial(HTTPServer, port=2718)
    )
    metrics: Annotated[HTTPServer, setting("HTTP server of `/metrics`.")] = field(
        default_factory=partial(HTTPServer, port=2719)
    )

    def errors(self, path: str) -> Iterator[FieldError]:
        return distinct_ports(self, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerManagerConfiguration:
    garden_client_connection: Annotated[ClientConnection, setting("Connection to the garden cluster.")] = field(
        default_factory=partial(ClientConnection, qps=50.0, burst=100)
    )
    leader_election: Annotated[
        LeaderElection, setting("Leader election of the controllers, by a Lease in the garden cluster.")
    ] = field(
        default_factory=partial(
            LeaderElection,
            resource_name="gardener-controller-manager-leader-election",
            resource_namespace="garden",
        )
    )
    server: Annotated[Server, setting("Servers of the program.")] = field(default_factory=Server)
    debugging: Annotated[Debugging, setting("Debugging.")] = field(default_factory=Debugging)
    tracing: Annotated[Tracing, setting("OpenTelemetry traces.")] = field(default_factory=Tracing)
    log_level: LogLevel = "info"
    log_format: LogFormat = "json"
    graceful_shutdown_timeout: GracefulShutdownTimeout = 5.0
    feature_gates: Annotated[
        dict[str, bool], setting("Accepted for compatibility; the controllers have no feature gates.")
    ] = field(default_factory=dict)
    controllers: Annotated[Controllers, setting("The control loops.")] = field(default_factory=Controllers)
