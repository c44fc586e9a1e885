"""Kinds that scenarios take for granted."""

from devcluster.cluster import Cluster
from kit.kinds import custom_resource, serve

KINDS = (
    custom_resource("autoscaling.k8s.io", "VerticalPodAutoscaler"),
    custom_resource("monitoring.coreos.com", "Prometheus"),
    custom_resource("monitoring.coreos.com", "Alertmanager"),
    custom_resource("cert.gardener.cloud", "Certificate", version="v1alpha1"),
    custom_resource("cert.gardener.cloud", "Issuer", version="v1alpha1"),
    custom_resource("conf.example.com", "Thing"),
    custom_resource("conf.example.com", "GlobalThing", namespaced=False),
)


def install_kinds(cluster: Cluster) -> None:
    """Returns when they are served."""
    serve(cluster, *KINDS, has_status=True)
