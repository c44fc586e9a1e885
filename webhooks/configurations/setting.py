"""Settings of the commands from the configuration file of the server: the owner of the webhooks, and both clusters.

The commands are run by users and by Jobs that are trusted as much as their kubeconfigs, so a kubeconfig may use files
and plugins, which the server refuses.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from config import resource_manager, webhooks
from config.resource_manager.schema import ResourceManagerConfiguration
from gardener.distribution import version
from kube.runtime.client import Client
from kube.runtime.connection import in_cluster, load_kubeconfig
from kube.runtime.transport import Transport
from process.configuration.component import Component, load
from process.configuration.errors import ConfigError
from process.configuration.overrides import Overrides
from process.version import user_agent
from webhooks.rules.registration import Instance, Mode

if TYPE_CHECKING:
    from config.webhooks.schema import GardenWebhooksConfiguration

_COMPONENTS = (resource_manager.COMPONENT, webhooks.COMPONENT)
_GARDEN_NAMESPACE = "garden"

EPILOG = (
    "The environment variables KUBECONFIG and TARGET_KUBECONFIG, for the webhooks of a garden "
    "GARDEN_KUBECONFIG, override the kubeconfigs of the configuration file."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    component: Component[Any]
    config: "ResourceManagerConfiguration | GardenWebhooksConfiguration"
    warnings: tuple[str, ...]
    instance: Instance
    namespace: str
    """Namespace of the server in the source cluster; for the webhooks of a garden, in the runtime cluster."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="path of the configuration file")
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="runtime: the webhooks serve the cluster that they run in; target: another cluster. The webhooks "
        "of a garden only support runtime. Default: target if the configuration has a kubeconfig of a "
        "target cluster, otherwise runtime",
    )
    parser.add_argument(
        "--prefix", default="", metavar="TEXT", help='prefix of "gardener-resource-manager" in all names'
    )
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help="namespace of the server in the source cluster; default: leaderElection.resourceNamespace, or garden",
    )


def read(arguments: argparse.Namespace, *, environment: Mapping[str, str] = os.environ) -> Setting:
    """Return the setting described by the arguments.

    Raises:
        ConfigError: the configuration or an argument is invalid.
    """
    component, loaded = load(Path(arguments.config), _COMPONENTS, overrides=Overrides(), environment=environment)
    config = loaded.config
    if isinstance(config, ResourceManagerConfiguration):
        namespace, default = config.leader_election.resource_namespace, mode_of(config)
    elif arguments.mode == Mode.TARGET.value:
        raise ConfigError([f"--mode {arguments.mode} is not for a {component.kind}; leave it out"])
    else:
        namespace, default = _GARDEN_NAMESPACE, Mode.RUNTIME
    mode = Mode(arguments.mode) if arguments.mode else default
    return Setting(
        component=component,
        config=config,
        warnings=loaded.warnings,
        instance=Instance(mode=mode, prefix=arguments.prefix),
        namespace=arguments.namespace or namespace,
    )


def mode_of(config: ResourceManagerConfiguration) -> Mode:
    source, target = config.source_client_connection.kubeconfig, config.target_client_connection.kubeconfig
    return Mode.TARGET if target and target != source else Mode.RUNTIME


def client(setting: Setting, transport: Transport) -> Client:
    return Client(transport, user_agent=user_agent(setting.component.name, version()))


def transport(setting: Setting, cluster: Literal["source", "target"], environment: Mapping[str, str]) -> Transport:
    """Connect to the cluster in which the server runs, or to the one whose API server calls it.

    Raises:
        ConfigurationError: the kubeconfig is unusable.
    """
    source, target = setting.component.connections(setting.config).values()
    kubeconfig = (source if cluster == "source" else target).kubeconfig
    return Transport(
        load_kubeconfig(Path(kubeconfig), trusted=True) if kubeconfig else in_cluster(environment=environment)
    )
