"""External access to the API server of a Shoot: through the ingress gateway of the seed, by its names.

All Shoots share the address of the gateway, which reads the server name in the first bytes of TLS. A client that
connects to the address of the Service instead, such as the proxy on the nodes of a Shoot, first sends that address.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from components import istio
from components.kube_apiserver import LABELS, NAME, PORT
from components.parts import SEED_CLASS, made
from gardener.api.kinds import ENVOY_FILTERS
from gardener.managed_resource.bundle import managed_resource
from kube.objects import Object
from kube.resources import NAMESPACES

MANAGED_RESOURCE = f"{NAME}-sni"
_PROXY_PORT = 8443
_TCP_PROXY = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_FILE_LOG = "envoy.extensions.access_loggers.file.v3.FileAccessLog"
_LOGGED = (
    "[%START_TIME%]",
    '"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%"',
    "%RESPONSE_CODE%",
    "%RESPONSE_FLAGS%",
    "%RESPONSE_CODE_DETAILS%",
    "%CONNECTION_TERMINATION_DETAILS%",
    '"%UPSTREAM_TRANSPORT_FAILURE_REASON%"',
    "%BYTES_RECEIVED%",
    "%BYTES_SENT%",
    "%DURATION%",
    "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
    '"%REQ(X-FORWARDED-FOR)%"',
    '"%REQ(USER-AGENT)%"',
    '"%REQ(X-REQUEST-ID)%"',
    '"%REQ(:AUTHORITY)%"',
    '"%UPSTREAM_HOST%"',
    "%UPSTREAM_CLUSTER%",
    "%UPSTREAM_LOCAL_ADDRESS%",
    "%DOWNSTREAM_LOCAL_ADDRESS%",
    "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
    "%REQUESTED_SERVER_NAME%",
    "%ROUTE_NAME%",
    "apiserver-proxy\n",
)
"""Access log format: a line for each connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Parameters of the exposure.

    Attributes:
        namespace: of the Shoot.
        namespace_uid: owner of the filter, which is in another namespace.
        hosts: names of the API server.
        address: of its Service.
        gateway_namespace: of the ingress gateway.
        gateway: labels of its pods.
    """

    namespace: str
    namespace_uid: str
    hosts: Sequence[str]
    address: str
    gateway_namespace: str = "istio-ingress"
    gateway: Mapping[str, str] = field(default_factory=lambda: istio.GATEWAY)


def objects(values: Values) -> list[Object]:
    """Objects of a Shoot that is not hibernated."""
    hosts = sorted(values.hosts)
    return [
        *istio.passed_through(
            NAME, hosts, namespace=values.namespace, gateway=values.gateway, labels=LABELS, routes_name=NAME
        ),
        *managed_resource(MANAGED_RESOURCE, values.namespace, [_filter(values)], resource_class=SEED_CLASS),
    ]


def _filter(values: Values) -> Object:
    bits = ip_address(values.address).max_prefixlen
    matching = {
        "destination_port": PORT,
        "prefix_ranges": [{"address_prefix": values.address, "prefix_len": bits}],
    }
    patch = {
        "applyTo": "FILTER_CHAIN",
        "match": {"context": "ANY", "listener": {"portNumber": _PROXY_PORT}},
        "patch": {"operation": "ADD", "value": {"filter_chain_match": matching, "filters": [_proxy(values)]}},
    }
    spec = {"workloadSelector": {"labels": dict(values.gateway)}, "configPatches": [patch]}
    found = made(ENVOY_FILTERS, values.namespace, namespace=values.gateway_namespace, spec=spec)
    owner = {
        **NAMESPACES.type_meta,
        "name": values.namespace,
        "uid": values.namespace_uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [owner]}}


def _proxy(values: Values) -> Object:
    upstream = f"outbound|{PORT}||{istio.host_of(NAME, values.namespace)}"
    log = {
        "@type": f"type.googleapis.com/{_FILE_LOG}",
        "path": "/dev/stdout",
        "log_format": {"text_format_source": {"inline_string": " ".join(_LOGGED)}},
    }
    config = {
        "@type": f"type.googleapis.com/{_TCP_PROXY}",
        "stat_prefix": upstream,
        "cluster": upstream,
        "access_log": [{"name": "envoy.access_loggers.file", "typed_config": log}],
    }
    return {"name": "envoy.filters.network.tcp_proxy", "typed_config": config}
