"""Configuration of the controller manager: `schema` has the whole, `controllers` the section of that name."""

from typing import TYPE_CHECKING

from process.configuration.component import Component
from process.configuration.overrides import ClusterConnection

if TYPE_CHECKING:
    from config.controller_manager.schema import ControllerManagerConfiguration


def _configuration() -> "type[ControllerManagerConfiguration]":
    from config.controller_manager.schema import ControllerManagerConfiguration

    return ControllerManagerConfiguration


COMPONENT = Component(
    name="gardener-controller-manager",
    metrics_prefix="controller_manager",
    api_version="controllermanager.config.gardener.cloud/v1alpha1",
    kind="ControllerManagerConfiguration",
    clusters=(ClusterConnection(name="garden", attribute="garden_client_connection", variable="KUBECONFIG"),),
    configuration=_configuration,
)
load, decode = COMPONENT.load, COMPONENT.decode
