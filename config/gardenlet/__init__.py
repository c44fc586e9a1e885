"""Configuration of the gardenlet."""

from typing import TYPE_CHECKING

from process.configuration.component import Component
from process.configuration.overrides import ClusterConnection

if TYPE_CHECKING:
    from config.gardenlet.schema import GardenletConfiguration


def _configuration() -> "type[GardenletConfiguration]":
    from config.gardenlet.schema import GardenletConfiguration

    return GardenletConfiguration


COMPONENT = Component(
    name="gardenlet",
    metrics_prefix="gardenlet",
    api_version="gardenlet.config.gardener.cloud/v1alpha1",
    kind="GardenletConfiguration",
    clusters=(
        ClusterConnection(name="seed", attribute="seed_client_connection", variable="KUBECONFIG"),
        ClusterConnection(
            name="garden", attribute="garden_client_connection", variable="GARDEN_KUBECONFIG", at_start=False
        ),
    ),
    configuration=_configuration,
)
load, decode = COMPONENT.load, COMPONENT.decode
