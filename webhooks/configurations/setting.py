"""What the commands beside the server need of the configuration file: whose webhooks these are, and both clusters.

They are run by people and by Jobs whose kubeconfigs are as trusted as they are themselves, so a kubeconfig may use what
the server refuses: files and plugins.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from config.resource_manager import COMPONENT, load
from config.resource_manager.schema import ResourceManagerConfiguration
from kube.runtime.client import Client
from kube.runtime.connection import in_cluster, load_kubeconfig
from kube.runtime.transport import Transport
from process.version import user_agent, version
from webhooks.rules.registration import Instance, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    config: ResourceManagerConfiguration
    warnings: tuple[str, ...]
    instance: Instance
    namespace: str
    """Where the server runs, in the source cluster."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="path of the configuration file")
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="runtime: the webhooks serve the cluster that they run in; target: another one. "
        "Default: target if the configuration names a kubeconfig of a target cluster, else runtime",
    )
    parser.add_argument(
        "--prefix", default="", metavar="TEXT", help='what comes before "gardener-resource-manager" in all names'
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="namespace of the server in the source cluster; default: leaderElection.resourceNamespace",
    )


def read(arguments: argparse.Namespace, *, environment: Mapping[str, str] = os.environ) -> Setting:
    """The setting that the arguments describe. Raises ConfigError."""
    loaded = load(Path(arguments.config), environment=environment)
    config = loaded.config
    mode = Mode(arguments.mode) if arguments.mode else mode_of(config)
    return Setting(
        config=config,
        warnings=loaded.warnings,
        instance=Instance(mode=mode, prefix=arguments.prefix),
        namespace=arguments.namespace or config.leader_election.resource_namespace,
    )


def mode_of(config: ResourceManagerConfiguration) -> Mode:
    source, target = config.source_client_connection.kubeconfig, config.target_client_connection.kubeconfig
    return Mode.TARGET if target and target != source else Mode.RUNTIME


def client(transport: Transport) -> Client:
    return Client(transport, user_agent=user_agent(COMPONENT.name, version()))


def transport(setting: Setting, cluster: Literal["source", "target"], environment: Mapping[str, str]) -> Transport:
    """To the cluster that the server runs in, or to the one whose API server asks. Raises ConfigurationError."""
    kubeconfig = COMPONENT.connections(setting.config)[cluster].kubeconfig
    return Transport(
        load_kubeconfig(Path(kubeconfig), trusted=True) if kubeconfig else in_cluster(environment=environment)
    )
