"""Configuration of the local provider."""

from typing import TYPE_CHECKING

from process.configuration.component import Component
from process.configuration.overrides import ClusterConnection

if TYPE_CHECKING:
    from config.local_provider.schema import LocalProviderConfiguration


def _configuration() -> "type[LocalProviderConfiguration]":
    from config.local_provider.schema import LocalProviderConfiguration

    return LocalProviderConfiguration


COMPONENT = Component(
    name="local-provider",
    metrics_prefix="local_provider",
    api_version="localprovider.config.gardener.cloud/v1alpha1",
    kind="LocalProviderConfiguration",
    clusters=(ClusterConnection(name="seed", attribute="seed_client_connection", variable="KUBECONFIG"),),
    configuration=_configuration,
)
load, decode = COMPONENT.load, COMPONENT.decode
