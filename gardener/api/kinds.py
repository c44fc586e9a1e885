"""Kinds of Gardener, and of others whose objects it creates or reads; those of Kubernetes are in `kube.resources`."""

from gardener.keys import GROUP
from kube.resources import Resource

MANAGED_RESOURCES = Resource(GROUP, "v1alpha1", "ManagedResource", "managedresources", namespaced=True)
DEFINITION = f"manifests/crds/{MANAGED_RESOURCES.plural}.{GROUP}.yaml"
"""The file of this project that defines them."""
MACHINES = Resource("machine.sapcloud.io", "v1alpha1", "Machine", "machines", namespaced=True)
HVPAS = Resource("autoscaling.k8s.io", "v1alpha1", "Hvpa", "hvpas", namespaced=True)
PROMETHEUSES = Resource("monitoring.coreos.com", "v1", "Prometheus", "prometheuses", namespaced=True)

ISTIO_GROUP = "networking.istio.io"
VIRTUAL_SERVICES = Resource(ISTIO_GROUP, "v1beta1", "VirtualService", "virtualservices", namespaced=True)
GATEWAYS = Resource(ISTIO_GROUP, "v1beta1", "Gateway", "gateways", namespaced=True)
DESTINATION_RULES = Resource(ISTIO_GROUP, "v1beta1", "DestinationRule", "destinationrules", namespaced=True)
ENVOY_FILTERS = Resource(ISTIO_GROUP, "v1alpha3", "EnvoyFilter", "envoyfilters", namespaced=True)
