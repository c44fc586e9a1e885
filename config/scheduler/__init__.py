"""Configuration of the scheduler."""

from typing import TYPE_CHECKING

from process.configuration.component import Component
from process.configuration.overrides import ClusterConnection

if TYPE_CHECKING:
    from config.scheduler.schema import SchedulerConfiguration


def _configuration() -> "type[SchedulerConfiguration]":
    from config.scheduler.schema import SchedulerConfiguration

    return SchedulerConfiguration


COMPONENT = Component(
    name="gardener-scheduler",
    metrics_prefix="scheduler",
    api_version="scheduler.config.gardener.cloud/v1alpha1",
    kind="SchedulerConfiguration",
    clusters=(ClusterConnection(name="garden", attribute="client_connection", variable="KUBECONFIG"),),
    configuration=_configuration,
)
load, decode = COMPONENT.load, COMPONENT.decode
