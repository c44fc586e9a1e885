"""Configuration of the resource manager, for the agent and for the webhooks.

`schema` has the whole, `controllers` and `webhooks` their sections, `restrictions` the limits of ManagedResources.
"""

from typing import TYPE_CHECKING

from process.configuration.component import Component
from process.configuration.overrides import ClusterConnection

if TYPE_CHECKING:
    from config.resource_manager.schema import ResourceManagerConfiguration


def _configuration() -> "type[ResourceManagerConfiguration]":
    from config.resource_manager.schema import ResourceManagerConfiguration

    return ResourceManagerConfiguration


COMPONENT = Component(
    name="gardener-resource-manager",
    metrics_prefix="resource_manager",
    api_version="resourcemanager.config.gardener.cloud/v1alpha1",
    kind="ResourceManagerConfiguration",
    clusters=(
        ClusterConnection(name="source", attribute="source_client_connection", variable="KUBECONFIG"),
        ClusterConnection(
            name="target",
            attribute="target_client_connection",
            variable="TARGET_KUBECONFIG",
            fallback="source",
            takes_namespaces=True,
        ),
    ),
    configuration=_configuration,
)
load, decode = COMPONENT.load, COMPONENT.decode
