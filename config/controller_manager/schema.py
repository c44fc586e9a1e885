"""All fields of the controller manager's configuration file, except those of its controllers."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from config.controller_manager.controllers import Controllers
from process.configuration.blocks import ClientConnection, ElectingConfiguration, HTTPServer, LeaderElection, Server
from process.configuration.fields import setting


@dataclass(frozen=True, kw_only=True)
class _Connections:
    garden_client_connection: Annotated[ClientConnection, setting("Connection to the garden cluster.")] = field(
        default_factory=partial(ClientConnection, qps=50.0, burst=100)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerManagerConfiguration(ElectingConfiguration, _Connections):
    leader_election: Annotated[
        LeaderElection, setting("Leader election of the controllers, by a Lease in the garden cluster.")
    ] = field(
        default_factory=partial(
            LeaderElection,
            resource_name="gardener-controller-manager-leader-election",
            resource_namespace="garden",
        )
    )
    server: Annotated[Server, setting("Servers of the program.")] = field(
        default_factory=partial(Server, health_probes=HTTPServer(port=2718), metrics=HTTPServer(port=2719))
    )
    feature_gates: Annotated[dict[str, bool], setting("Accepted for compatibility; no feature gates exist.")] = field(
        default_factory=dict
    )
    controllers: Annotated[Controllers, setting("Controllers of the program.")] = field(default_factory=Controllers)
