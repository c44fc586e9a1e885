"""Names that are looked for in requests, Nodes and Machines."""

KUBELET_SERVING = "kubernetes.io/kubelet-serving"
KUBE_APISERVER_CLIENT = "kubernetes.io/kube-apiserver-client"
SIGNERS = (KUBELET_SERVING, KUBE_APISERVER_CLIENT)

NODE_USER_PREFIX = "system:node:"
NODES_GROUP = "system:nodes"
BOOTSTRAP_USER_PREFIX = "system:bootstrap:"

NODE_AGENT_PREFIX = "gardener.cloud:node-agent:machine:"
GARDENADM_PREFIX = "gardener.cloud:gardenadm:shoot:"
SHOOTS_GROUP = "gardener.cloud:system:shoots"

MACHINE_NODE_LABEL = "node"
"""On a Machine: the name of the Node that it became."""

DNS_ADDRESS_TYPES = ("Hostname", "InternalDNS", "ExternalDNS")
IP_ADDRESS_TYPES = ("InternalIP", "ExternalIP")
ADDRESS_TYPES = frozenset((*DNS_ADDRESS_TYPES, *IP_ADDRESS_TYPES))
SERVING_USAGES = frozenset({"digital signature", "key encipherment", "server auth"})

APPROVED = "Approved"
DENIED = "Denied"
REQUEST_APPROVED = "RequestApproved"
REQUEST_DENIED = "RequestDenied"
