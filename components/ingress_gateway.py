"""The ingress gateways of a seed: access to API servers of Shoots, their tunnels, and pages for operators."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from components import istio, istiod, vpn_authorization_server
from components.access import role, role_binding, rule, service_account
from components.monitors import AGGREGATE, service_monitor
from components.parts import GARDEN, allowed_ports, in_seed, made
from components.workloads import REACHES_API_SERVER, SCRAPED_IN_SEED, container, deployment, service
from gardener import keys
from gardener.api.kinds import ENVOY_FILTERS, GATEWAYS, VIRTUAL_SERVICES
from kube.objects import Object
from kube.resources import HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS

NAME = "istio-ingressgateway"
MANAGED_RESOURCE = "istio"
_ACCOUNT = f"{NAME}-service-account"
_SECRETS = f"{NAME}-sds"
_USER = 1337
_LEAST_REPLICAS, _MOST_REPLICAS = 2, 9
_MOST_REPLICAS_A_ZONE = 4
_PROXY, _TLS, _TUNNEL, _METRICS = 8443, 9443, 8132, 15020
_CONNECTION_BUFFER = 32768
_EXPORTED_ALIAS = "all-istio-ingresses"
_MANAGER = "envoy.filters.network.http_connection_manager"
_AUTHORIZATION = "envoy.filters.http.ext_authz"
_TYPES = "type.googleapis.com/envoy.extensions.filters"
_MANAGER_TYPE = f"{_TYPES}.network.http_connection_manager.v3.HttpConnectionManager"
_REACHED = (
    *(f"all-shoots-{name}" for name in ("kube-apiserver-tcp-443", "vpn-seed-server-tcp-1194")),
    *(f"all-shoots-vpn-seed-server-{number}-tcp-1194" for number in (0, 1)),
    f"{GARDEN}-nginx-ingress-controller-tcp-443",
    f"{GARDEN}-{vpn_authorization_server.NAME}-tcp-{vpn_authorization_server.PORT}",
    f"{istiod.NAMESPACE}-{istiod.NAME}-tcp-15012",
)
"""Services that the gateway reaches, in the form of pod labels."""
_PROXY_SETTINGS = """\
concurrency: 4
protocolDetectionTimeout: 100ms
runtimeValues:
  "overload.global_downstream_max_connections": "750000"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Attributes:
    namespace: of the gateway.
    labels: of its pods.
    annotations: of its Service, for the provider of its address.
    address: requested by its Service; empty: any.
    traffic_policy: of its Service: `Local` keeps the addresses of clients; empty: the default.
    zones: number of zones it is spread over; each may have an address of its own.
    monitored: whether there are ServiceMonitors.
    """

    image: str
    namespace: str = "istio-ingress"
    labels: Mapping[str, str] = field(default_factory=lambda: istio.GATEWAY)
    annotations: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    traffic_policy: str = ""
    zones: int = 1
    monitored: bool = True

    @property
    def replicas(self) -> tuple[int, int]:
        """Minimum and maximum."""
        if self.zones > 1:
            return self.zones * _LEAST_REPLICAS, self.zones * _MOST_REPLICAS_A_ZONE
        return _LEAST_REPLICAS, _MOST_REPLICAS


def objects(usual: Values, *others: Values) -> list[Object]:
    """Args: usual: the gateway of all Shoots without an ExposureClass."""
    contents = [*_contents(usual, monitor=NAME)]
    for each in others:
        contents += _contents(each, monitor=f"{NAME}-{each.namespace}")
    return in_seed(MANAGED_RESOURCE, contents, namespace=istiod.NAMESPACE)


def _contents(values: Values, *, monitor: str) -> Iterator[Object]:
    """Args: monitor: name of the ServiceMonitor, unique since all are in one namespace."""
    where, labels = values.namespace, values.labels
    yield service_account(_ACCOUNT, where, labels=labels)
    yield role(_SECRETS, where, rule("", "secrets", ("get", "watch", "list")), labels=labels)
    yield role_binding(_SECRETS, where, _ACCOUNT, labels=labels)
    yield _deployment(values)
    yield _service(values)
    yield made(HORIZONTAL_POD_AUTOSCALERS, NAME, namespace=where, labels=labels, spec=_scaling(values))
    budget = {"minAvailable": 1, "selector": {"matchLabels": labels}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    yield made(POD_DISRUPTION_BUDGETS, NAME, namespace=where, labels=labels, spec=budget)
    patches = [each for number in (_PROXY, _TLS, _TUNNEL) for each in _connections(number)]
    yield made(ENVOY_FILTERS, NAME, namespace=where, labels=labels, spec={"configPatches": patches})
    yield from _with_addresses_of_clients(where, labels)
    yield from _tunnels(where, labels)
    if values.monitored:
        yield _monitor(monitor, values)


# --- pods


def _deployment(values: Values) -> Object:
    probe = {
        "failureThreshold": 30,
        "httpGet": {"path": "/healthz/ready", "port": 15021, "scheme": "HTTP"},
        "initialDelaySeconds": 1,
        "periodSeconds": 2,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    its_container = container(
        "istio-proxy",
        values.image,
        cpu="300m",
        memory="600Mi",
        args=[
            "proxy",
            "router",
            f"--domain={values.namespace}.svc.cluster.local",
            "--proxyLogLevel=info",
            "--proxyComponentLogLevel=misc:error",
            "--log_output_level=default:info,ads:error",
        ],
        env=list(_environment(values.namespace)),
        ports=[{"containerPort": number, "protocol": "TCP"} for number in (_PROXY, _TLS, _TUNNEL)],
        readinessProbe=probe,
        securityContext={
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
        volumeMounts=[
            {"name": name, "mountPath": path, **({"readOnly": True} if is_read else {})}
            for name, path, is_read in _MOUNTS
        ],
    )
    its_container["resources"]["limits"] = {"memory": "4800Mi"}
    pod = {
        "affinity": istio.apart(values.labels),
        "containers": [its_container],
        "priorityClassName": "gardener-system-critical",
        "securityContext": {"fsGroup": _USER, "runAsGroup": _USER, "runAsNonRoot": True, "runAsUser": _USER},
        "serviceAccountName": _ACCOUNT,
        "volumes": list(_volumes()),
    }
    reached = {f"{keys.TO_PREFIX}{each}": keys.ALLOWED for each in _REACHED}
    return deployment(
        NAME,
        namespace=values.namespace,
        labels=values.labels,
        pod=pod,
        pod_labels={
            **REACHES_API_SERVER,
            **reached,
            "to-target": keys.ALLOWED,
            "service.istio.io/canonical-name": NAME,
            "service.istio.io/canonical-revision": "1.19",
        },
        pod_annotations={"sidecar.istio.io/inject": "false", "proxy.istio.io/config": _PROXY_SETTINGS},
        replicas=values.replicas[0],
        revisionHistoryLimit=1,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    )


def _environment(namespace: str) -> Iterator[Object]:
    yield from istio.texts(JWT_POLICY="third-party-jwt", PILOT_CERT_PROVIDER="istiod", CA_ADDR=istiod.ADDRESS)
    yield from istio.fields(
        NODE_NAME="spec.nodeName",
        POD_NAME="metadata.name",
        POD_NAMESPACE="metadata.namespace",
        INSTANCE_IP="status.podIP",
        HOST_IP="status.hostIP",
    )
    yield from istio.limits(ISTIO_CPU_LIMIT="cpu")
    yield from istio.fields(SERVICE_ACCOUNT="spec.serviceAccountName")
    yield from istio.texts(
        ISTIO_META_WORKLOAD_NAME=NAME,
        ISTIO_META_OWNER=f"kubernetes://apis/apps/v1/namespaces/{namespace}/deployments/{NAME}",
        ISTIO_META_MESH_ID="cluster.local",
        TRUST_DOMAIN="cluster.local",
        ISTIO_META_UNPRIVILEGED_POD="true",
        ISTIO_META_CLUSTER_ID="Kubernetes",
    )
    yield from istio.fields(ISTIO_META_NODE_NAME="spec.nodeName")


_MOUNTS = (
    ("workload-socket", "/var/run/secrets/workload-spiffe-uds", False),
    ("credential-socket", "/var/run/secrets/credential-uds", False),
    ("workload-certs", "/var/run/secrets/workload-spiffe-credentials", False),
    ("istio-envoy", "/etc/istio/proxy", False),
    ("config-volume", "/etc/istio/config", False),
    ("istiod-ca-cert", "/var/run/secrets/istio", False),
    ("istio-token", "/var/run/secrets/tokens", True),
    ("istio-data", "/var/lib/istio/data", False),
    ("podinfo", "/etc/istio/pod", False),
    ("ingressgateway-certs", "/etc/istio/ingressgateway-certs", True),
    ("ingressgateway-ca-certs", "/etc/istio/ingressgateway-ca-certs", True),
)
"""Volume, path, whether it is mounted read-only."""


def _volumes() -> Iterator[Object]:
    for name in ("workload-socket", "credential-socket", "workload-certs"):
        yield {"name": name, "emptyDir": {}}
    yield {"name": "istiod-ca-cert", "configMap": {"name": "istio-ca-root-cert"}}
    about = [{"path": name, "fieldRef": {"fieldPath": f"metadata.{name}"}} for name in ("labels", "annotations")]
    yield {"name": "podinfo", "downwardAPI": {"items": about}}
    for name in ("istio-envoy", "istio-data"):
        yield {"name": name, "emptyDir": {}}
    yield {"name": "istio-token", "projected": {"sources": [{"serviceAccountToken": istiod.TOKENS}]}}
    yield {"name": "config-volume", "configMap": {"name": "istio", "optional": True}}
    for name in ("ingressgateway-certs", "ingressgateway-ca-certs"):
        yield {"name": name, "secret": {"secretName": f"istio-{name}", "optional": True}}


def _service(values: Values) -> Object:
    selectors = [
        *({"matchLabels": {keys.ROLE: each}} for each in ("extension", "shoot")),
        {"matchLabels": {"kubernetes.io/metadata.name": GARDEN}},
    ]
    ports = (("proxy", _PROXY, _PROXY), ("tcp", 443, _TLS), ("tls-tunnel", _TUNNEL, _TUNNEL))
    return service(
        NAME,
        namespace=values.namespace,
        ports=[{"name": name, "port": number, "targetPort": target} for name, number, target in ports],
        selects=values.labels,
        labels=values.labels,
        annotations={
            **values.annotations,
            SCRAPED_IN_SEED: allowed_ports(_METRICS),
            keys.FROM_WORLD: allowed_ports(*sorted((_PROXY, _TLS, _TUNNEL))),
            keys.NAMESPACE_SELECTORS: orjson.dumps(selectors).decode(),
            keys.NAMESPACE_ALIAS: _EXPORTED_ALIAS,
        },
        type="LoadBalancer",
        **({"loadBalancerIP": values.address} if values.address else {}),
        **({"externalTrafficPolicy": values.traffic_policy} if values.traffic_policy else {}),
    )


def _scaling(values: Values) -> Object:
    least, most = values.replicas
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": name, "target": {"averageUtilization": 80, "type": "Utilization"}},
            }
            for name in ("cpu", "memory")
        ],
        "behavior": {"scaleDown": _one_pod_in(1800), "scaleUp": _one_pod_in(60)},
    }


def _one_pod_in(seconds: int) -> Object:
    policy = {"type": "Pods", "value": 1, "periodSeconds": seconds}
    return {"policies": [policy], "stabilizationWindowSeconds": seconds}


def _monitor(name: str, values: Values) -> Object:
    """Monitor with a relabeled address, since the Service does not have the port of metrics."""
    moved = {
        "sourceLabels": ["__meta_kubernetes_pod_ip"],
        "targetLabel": "__address__",
        "replacement": f"$1:{_METRICS}",
    }
    return service_monitor(
        AGGREGATE,
        name,
        selects=values.labels,
        namespace=istiod.NAMESPACE,
        endpoint={"port": "tls-tunnel", "path": "/stats/prometheus", "relabelings": [moved]},
        namespaceSelector={"matchNames": [values.namespace]},
    )


# --- Envoy's handling of connections


def _patch(applies_to: str, match: Object, value: Object, **how: str) -> Object:
    patch = {"operation": "MERGE", **how, "value": value}
    return {"applyTo": applies_to, "match": {"context": "GATEWAY", **match}, "patch": patch}


def _connections(number: int) -> Iterator[Object]:
    """Limit the memory of connections, and close them soon when their client is gone."""
    listener = {"listener": {"portNumber": number}}
    buffer = {"per_connection_buffer_limit_bytes": _CONNECTION_BUFFER}
    yield _patch("LISTENER", listener, buffer)
    yield _patch("CLUSTER", {"cluster": {"portNumber": number}}, buffer)
    # SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL
    options = [
        {"level": level, "name": name, "int_value": value, "state": "STATE_LISTENING"}
        for level, name, value in ((1, 9, 1), (6, 4, 55), (6, 5, 55))
    ]
    yield _patch("LISTENER", listener, {"socket_options": options})


def _server(name: str, number: int, protocol: str, host: str) -> Object:
    return {"hosts": [host], "port": {"name": name, "number": number, "protocol": protocol}}


def _with_addresses_of_clients(namespace: str, labels: Mapping[str, str]) -> Iterator[Object]:
    """Port for connections with the PROXY protocol; Shoots add routes; other connections are rejected."""
    name = "proxy-protocol"
    protocol = {
        "name": "proxy_protocol",
        "typed_config": {"@type": f"{_TYPES}.listener.proxy_protocol.v3.ProxyProtocol"},
    }
    value = {"per_connection_buffer_limit_bytes": _CONNECTION_BUFFER, "listener_filters": [protocol]}
    patches = [_patch("LISTENER", {"listener": {"portNumber": _PROXY}}, value)]
    yield _envoy_filter(name, namespace, labels, patches, labels=labels)
    gateway = {"selector": dict(labels), "servers": [_server("tcp", _PROXY, "TCP", "*")]}
    yield made(GATEWAYS, name, namespace=namespace, labels=labels, spec=gateway)
    nowhere = {"destination": {"host": "localhost", "port": {"number": 9999}}}
    routes = {
        "exportTo": ["."],
        "gateways": [name],
        "hosts": ["blackhole.local"],
        "tcp": [{"match": [{"port": _PROXY}], "route": [nowhere]}],
    }
    yield made(VIRTUAL_SERVICES, f"{name}-blackhole", namespace=namespace, labels=labels, spec=routes)


def _tunnels(namespace: str, labels: Mapping[str, str]) -> Iterator[Object]:
    """Route CONNECT requests to the Shoot in a header, if the authorization server permits."""
    server = _server("tls-tunnel", _TUNNEL, "HTTP", vpn_authorization_server.HOST)
    spec: Object = {"selector": dict(labels), "servers": [server]}
    yield made(GATEWAYS, vpn_authorization_server.NAME, namespace=namespace, spec=spec)
    connect = {"http_protocol_options": {"accept_http_10": True}, "upgrade_configs": [{"upgrade_type": "CONNECT"}]}
    yield _envoy_filter("http-connect-listener", namespace, labels, [_managed(connect)])
    to_shoots = {
        "match": {"connect_matcher": {}},
        "route": {
            "cluster_header": "Reversed-VPN",
            "upgrade_configs": [{"connect_config": {}, "upgrade_type": "CONNECT"}],
        },
    }
    hosts = [
        {"domains": ["api.*"], "name": "reversed-vpn", "routes": [to_shoots, _elsewhere()]},
        {"domains": ["*"], "name": "all", "routes": [_elsewhere()]},
    ]
    patches = [_managed({"route_config": {"virtual_hosts": hosts}}), _authorized()]
    yield _envoy_filter("reversed-vpn", namespace, labels, patches)


def _envoy_filter(
    name: str,
    namespace: str,
    pods: Mapping[str, str],
    patches: Iterable[Object],
    *,
    labels: Mapping[str, str] | None = None,
) -> Object:
    spec = {"configPatches": list(patches), "workloadSelector": {"labels": dict(pods)}}
    return made(ENVOY_FILTERS, name, namespace=namespace, labels=labels, spec=spec)


def _of_tunnels(**of_the_filter: Object) -> Object:
    chain = {"filter": {"name": _MANAGER, **of_the_filter}}
    return {"listener": {"portNumber": _TUNNEL, "filterChain": chain}}


def _managed(settings: Object) -> Object:
    return _patch(
        "NETWORK_FILTER", _of_tunnels(), {"name": _MANAGER, "typed_config": {"@type": _MANAGER_TYPE, **settings}}
    )


def _elsewhere() -> Object:
    """Redirect requests other than CONNECT to the usual TLS port."""
    other = {"name": ":method", "string_match": {"exact": "CONNECT"}, "invert_match": True}
    free = {"@type": f"{_TYPES}.http.ext_authz.v3.ExtAuthzPerRoute", "disabled": True}
    return {
        "match": {"prefix": "/", "headers": [other]},
        "redirect": {"https_redirect": True, "port_redirect": 443},
        "typed_per_filter_config": {_AUTHORIZATION: free},
    }


def _authorized() -> Object:
    cluster = f"outbound|{vpn_authorization_server.PORT}||{vpn_authorization_server.HOST}"
    settings = {
        "@type": f"{_TYPES}.http.ext_authz.v3.ExtAuthz",
        "transport_api_version": "V3",
        "grpc_service": {"envoy_grpc": {"cluster_name": cluster}, "timeout": "0.250s"},
    }
    return _patch(
        "HTTP_FILTER",
        _of_tunnels(subFilter={"name": "envoy.filters.http.router"}),
        {"name": _AUTHORIZATION, "typed_config": settings},
        operation="INSERT_BEFORE",
        filterClass="AUTHZ",
    )
