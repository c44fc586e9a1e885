"""Labels, annotations and kinds of the Istio cluster configuration controller."""

from kube.resources import Resource

NAME = "istio-cluster-configuration"

ROLE, INGRESS_ROLE = "gardener.cloud/role", "istio-ingress"
EXPOSURE_CLASS = "handler.exposureclass.gardener.cloud/name"
EXPORT_TO = "networking.istio.io/exportTo"
MANAGED_BY, MANAGER = "resources.gardener.cloud/managed-by", NAME
SUFFIX = "-cluster-configuration"

DESTINATION_RULES = Resource("networking.istio.io", "v1beta1", "DestinationRule", "destinationrules", namespaced=True)
ENVOY_FILTERS = Resource("networking.istio.io", "v1alpha3", "EnvoyFilter", "envoyfilters", namespaced=True)
