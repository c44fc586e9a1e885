"""A proxy on each node, through which pods reach the API server at the address of its Service.

It forwards connections to the ingress gateway of the seed, preceded by their original destination.
"""

from collections.abc import Iterator

import yaml

from components.access import service_account
from components.component import ON_NODES, Component
from components.inputs import Inputs
from components.namespaces import KUBE_SYSTEM
from components.parts import made
from components.results import CLUSTER_IP
from components.shoot_pods import (
    CRITICAL,
    FROM_SEED,
    SECCOMP,
    SYSTEM_COMPONENT,
    TO_API_SERVER,
    TO_NAMES,
)
from components.workloads import ON_ALL_NODES, container, daemon_set, service
from gardener import keys
from gardener.references import stamp
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

NAME = "apiserver-proxy"
_SELECTS = {"app": "kubernetes", "role": NAME}
_LABELS = {**_SELECTS, **SYSTEM_COMPONENT}
_GATEWAY, _ADMIN = 8443, 16910
"""Ports: of the gateway for such proxies, and for metrics and probes."""
_SOCKET = "/etc/admin-uds/admin.socket"
_BUFFER = 32 << 10
_MOST_CONNECTIONS = 10_000
_FILTERS, _SOCKETS = "envoy.extensions.filters", "envoy.extensions.transport_sockets"
_LOGGED = (
    "[%START_TIME%] %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% rx %BYTES_SENT% tx %DURATION%ms"
    ' "%DOWNSTREAM_REMOTE_ADDRESS%" "%UPSTREAM_HOST%"\n'
)


def _contents(inputs: Inputs) -> Iterator[Object]:
    config = {"envoy.yaml": yaml.dump(_configuration(inputs), Dumper=Dumper, sort_keys=True, width=1 << 20)}
    config_map = made(CONFIG_MAPS, f"{NAME}-config", namespace=KUBE_SYSTEM, labels=_LABELS, data=config)
    yield from stamp([config_map, _daemon_set(inputs)])
    ports = [{"name": "metrics", "port": _ADMIN, "targetPort": _ADMIN, "protocol": "TCP"}]
    yield service(NAME, namespace=KUBE_SYSTEM, ports=ports, selects=_SELECTS, labels=_LABELS, clusterIP="None")
    yield service_account(NAME, KUBE_SYSTEM, labels=_LABELS)


# --- configuration


def _typed(kind: str, **fields: object) -> Object:
    return {"@type": f"type.googleapis.com/{kind}", **fields}


def _at(address: str, port: int) -> Object:
    return {"socket_address": {"address": address, "port_value": port}}


def _configuration(inputs: Inputs) -> Object:
    limit = {"envoy": {"resource_limits": {"listener": {"kube_apiserver": {"connection_limit": _MOST_CONNECTIONS}}}}}
    runtime = {**limit, "overload": {"global_downstream_max_connections": _MOST_CONNECTIONS}}
    return {
        "layered_runtime": {"layers": [{"name": "static_layer_0", "static_layer": runtime}]},
        "admin": {"access_log": [_admin_log()], "address": {"pipe": {"path": _SOCKET}}},
        "static_resources": {
            "listeners": [_listener(inputs), _metrics_listener()],
            "clusters": [_gateway(inputs), _admin_cluster()],
        },
    }


def _admin_log() -> Object:
    """Access log without regular requests, such as probes."""
    filters = [
        {"header_filter": {"header": {"name": ":Path", "string_match": {"exact": path}, "invert_match": True}}}
        for path in ("/ready", "/stats/prometheus")
    ]
    return _log({}) | {"filter": {"and_filter": {"filters": filters}}}


def _log(fields: Object) -> Object:
    kind = "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"
    return {"name": "envoy.access_loggers.stdout", "typed_config": _typed(kind, **fields)}


def _listener(inputs: Inputs) -> Object:
    proxy = _typed(
        f"{_FILTERS}.network.tcp_proxy.v3.TcpProxy",
        stat_prefix="kube_apiserver",
        cluster="kube_apiserver",
        access_log=[_log({"log_format": {"text_format_source": {"inline_string": _LOGGED}}})],
    )
    return {
        "name": "kube_apiserver",
        "address": _at(inputs.cluster_ip, 443),
        "per_connection_buffer_limit_bytes": _BUFFER,
        "filter_chains": [{"filters": [{"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy}]}],
    }


def _metrics_listener() -> Object:
    """Listener for only metrics and readiness, with strict limits, since everyone can reach it."""
    routes = [
        {"match": {"path": "/metrics"}, "route": {"cluster": "uds_admin", "prefix_rewrite": "/stats/prometheus"}},
        {"match": {"path": "/ready"}, "route": {"cluster": "uds_admin"}},
    ]
    router = _typed(f"{_FILTERS}.http.router.v3.Router")
    manager = _typed(
        f"{_FILTERS}.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="ingress_http",
        use_remote_address=True,
        common_http_protocol_options={
            "idle_timeout": "8s",
            "max_connection_duration": "10s",
            "max_headers_count": 20,
            "max_stream_duration": "8s",
            "headers_with_underscores_action": "REJECT_REQUEST",
        },
        http2_protocol_options={
            "max_concurrent_streams": 5,
            "initial_stream_window_size": 65536,
            "initial_connection_window_size": 1048576,
        },
        stream_idle_timeout="8s",
        request_timeout="9s",
        codec_type="AUTO",
        route_config={
            "name": "local_route",
            "virtual_hosts": [{"name": "local_service", "domains": ["*"], "routes": routes}],
        },
        http_filters=[{"name": "envoy.filters.http.router", "typed_config": router}],
    )
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    return {
        "name": "metrics",
        "address": _at("0.0.0.0", _ADMIN),
        "additional_addresses": [{"address": _at("::", _ADMIN)}],
        "filter_chains": [chain],
    }


def _cluster(name: str, kind: str, timeout: str, address: Object, **fields: object) -> Object:
    endpoint = {"endpoint": {"address": address}}
    return {
        "name": name,
        "connect_timeout": timeout,
        "type": kind,
        "lb_policy": "ROUND_ROBIN",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        "transport_socket": {
            "name": "envoy.transport_sockets.raw_buffer",
            "typed_config": _typed(f"{_SOCKETS}.raw_buffer.v3.RawBuffer"),
        },
        **fields,
    }


def _gateway(inputs: Inputs) -> Object:
    plain = {
        "name": "envoy.transport_sockets.raw_buffer",
        "typed_config": _typed(f"{_SOCKETS}.raw_buffer.v3.RawBuffer"),
    }
    announced = _typed(
        f"{_SOCKETS}.proxy_protocol.v3.ProxyProtocolUpstreamTransport",
        config={"version": "V2"},
        transport_socket=plain,
    )
    return _cluster(
        "kube_apiserver",
        "LOGICAL_DNS",
        "5s",
        _at(inputs.host_in_pods, _GATEWAY),
        per_connection_buffer_limit_bytes=_BUFFER,
        dns_lookup_family="V4_ONLY",
        transport_socket={"name": "envoy.transport_sockets.upstream_proxy_protocol", "typed_config": announced},
        upstream_connection_options={"tcp_keepalive": {"keepalive_time": 7200, "keepalive_interval": 55}},
    )


def _admin_cluster() -> Object:
    return _cluster("uds_admin", "STATIC", "0.25s", {"pipe": {"path": _SOCKET}})


# --- on the nodes


def _daemon_set(inputs: Inputs) -> Object:
    own = {**_LABELS, **CRITICAL}
    reaches = dict.fromkeys((FROM_SEED, TO_API_SERVER, TO_NAMES), keys.ALLOWED)
    pod = {
        "automountServiceAccountToken": False,
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "securityContext": SECCOMP,
        "serviceAccountName": NAME,
        "tolerations": ON_ALL_NODES,
        "initContainers": [_sidecar("setup", inputs, "--daemon=false", requests=("20m", "20Mi"), limit="200Mi")],
        "containers": [_sidecar("sidecar", inputs, requests=("5m", "15Mi"), limit="90Mi"), _proxy(inputs)],
        "volumes": [
            {"name": "proxy-config", "configMap": {"name": f"{NAME}-config"}},
            {"name": "admin-uds", "emptyDir": {}},
        ],
    }
    return daemon_set(
        NAME,
        namespace=KUBE_SYSTEM,
        labels=own,
        selects=_SELECTS,
        pod_labels={**own, **reaches},
        pod=pod,
        updateStrategy={"type": "RollingUpdate"},
    )


def _sidecar(name: str, inputs: Inputs, *arguments: str, requests: tuple[str, str], limit: str) -> Object:
    cpu, memory = requests
    made_container = container(
        name,
        inputs.image(NAME),
        cpu=cpu,
        memory=memory,
        args=[f"--ip-address={inputs.cluster_ip}", *arguments, "--interface=lo"],
        securityContext={"capabilities": {"add": ["NET_ADMIN"]}},
    )
    made_container["resources"]["limits"] = {"memory": limit}
    return made_container


def _proxy(inputs: Inputs) -> Object:
    probe = {
        "httpGet": {"path": "/ready", "port": _ADMIN},
        "initialDelaySeconds": 1,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    made_container = container(
        "proxy",
        inputs.image("envoy"),
        cpu="5m",
        memory="30Mi",
        command=["envoy", "--concurrency", "2", "--use-dynamic-base-id", "-c", f"/etc/{NAME}/envoy.yaml"],
        ports=[{"name": "metrics", "containerPort": _ADMIN, "hostPort": _ADMIN}],
        livenessProbe={**probe, "periodSeconds": 10},
        readinessProbe={**probe, "periodSeconds": 2},
        securityContext={"capabilities": {"add": ["NET_BIND_SERVICE"]}, "runAsUser": 0},
        volumeMounts=[
            {"name": "proxy-config", "mountPath": f"/etc/{NAME}"},
            {"name": "admin-uds", "mountPath": "/etc/admin-uds"},
        ],
    )
    made_container["resources"]["limits"] = {"memory": "1Gi"}
    return made_container


COMPONENT = Component(name=NAME, title=NAME, contents=_contents, results=[CLUSTER_IP], after=[*ON_NODES, "identity"])
