"""Labels, annotations, reasons of Events and kinds of the network policy controller."""

from kube.resources import Resource

NAME = "networkpolicy"
REPORTER = "networkpolicy-controller"

PREFIX = "networking.resources.gardener.cloud/"

# On policies
SERVICE_NAME = f"{PREFIX}service-name"
SERVICE_NAMESPACE = f"{PREFIX}service-namespace"
DESCRIPTION = "gardener.cloud/description"

# On Services
NAMESPACE_SELECTORS = f"{PREFIX}namespace-selectors"
NAMESPACE_ALIAS = f"{PREFIX}pod-label-selector-namespace-alias"
FROM_WORLD = f"{PREFIX}from-world-to-ports"
FROM_PREFIX, FROM_SUFFIX = f"{PREFIX}from-", "-allowed-ports"

# On client pods
CLIENT_PREFIX = f"{PREFIX}to-"
ALLOWED = "allowed"

NAMESPACE_LABEL = "kubernetes.io/metadata.name"

INVALID_ANNOTATION = "InvalidAnnotation"
NAME_TAKEN = "NetworkPolicyNameTaken"
TAKEN_OVER = "NetworkPolicyTakenOver"
LABEL_TOO_LONG = "PodLabelSelectorKey(s)TooLong"
GATEWAY_NOT_USABLE = "GatewayNotUsable"

NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", namespaced=True)
INGRESSES = Resource("networking.k8s.io", "v1", "Ingress", "ingresses", namespaced=True)

ISTIO_GROUP = "networking.istio.io"
VIRTUAL_SERVICES = Resource(ISTIO_GROUP, "v1beta1", "VirtualService", "virtualservices", namespaced=True)
GATEWAYS = Resource(ISTIO_GROUP, "v1beta1", "Gateway", "gateways", namespaced=True)
