"""The optional components of a seed: one line each."""

from components import (
    etcd_druid,
    kube_state_metrics,
    nginx_ingress,
    plutono,
    prometheus,
    prometheus_operator,
    vertical_pod_autoscaler,
    vpn_authorization_server,
    worker_roles,
)
from components.gateways import ISTIO, ISTIO_IMAGES
from config.gardenlet.schema import COMPONENTS as OPTIONAL
from config.gardenlet.schema import GardenletConfiguration

COMPONENTS = (
    *worker_roles.COMPONENTS,
    vertical_pod_autoscaler.COMPONENT,
    etcd_druid.COMPONENT,
    kube_state_metrics.COMPONENT,
    prometheus_operator.COMPONENT,
    *prometheus.COMPONENTS,
    plutono.COMPONENT,
    nginx_ingress.COMPONENT,
    vpn_authorization_server.COMPONENT,
)


def deployed(config: GardenletConfiguration) -> frozenset[str]:
    """Names of optional components that are deployed."""
    images = {ISTIO: ISTIO_IMAGES, **{each.name: each.images for each in COMPONENTS}}
    return frozenset(each for each in OPTIONAL if config.deploys(each, images.get(each, ())))
