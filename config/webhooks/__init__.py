"""Configuration of the webhooks of a garden: admission of the garden API."""

from typing import TYPE_CHECKING

from process.configuration.component import Component
from process.configuration.overrides import ClusterConnection

if TYPE_CHECKING:
    from config.webhooks.schema import GardenWebhooksConfiguration


def _configuration() -> "type[GardenWebhooksConfiguration]":
    from config.webhooks.schema import GardenWebhooksConfiguration

    return GardenWebhooksConfiguration


COMPONENT = Component(
    name="gardener-garden-webhooks",
    metrics_prefix="garden_webhooks",
    api_version="gardenwebhooks.config.gardener.cloud/v1alpha1",
    kind="GardenWebhooksConfiguration",
    clusters=(
        ClusterConnection(name="runtime", attribute="runtime_client_connection", variable="KUBECONFIG"),
        ClusterConnection(
            name="garden", attribute="garden_client_connection", variable="GARDEN_KUBECONFIG", fallback="runtime"
        ),
    ),
    configuration=_configuration,
)
load, decode = COMPONENT.load, COMPONENT.decode
