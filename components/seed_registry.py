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
