"""Configuration of the proxy at the server of the tunnel: it forwards CONNECT requests to the cluster."""

from collections.abc import Iterator

import yaml

from components.parts import made
from components.vpn.parts import SERVER
from gardener.references import make_unique
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from kube.yaml import Dumper

PROXY, METRICS = 9443, 15000
"""Ports."""
CERTIFICATES = "/srv/secrets/vpn-server"
_ADMIN = {"pipe": {"path": "/home/nonroot/envoy.admin"}}
_FILTERS, _SOCKETS = "envoy.extensions.filters", "envoy.extensions.transport_sockets"
_CONNECTION_MANAGER = "envoy.filters.network.http_connection_manager"
_SLOW_MILLISECONDS, _SERVER_ERROR = 1000, 500
_LOGGED = (
    '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS%'
    ' %BYTES_RECEIVED% rx %BYTES_SENT% tx %DURATION%ms "%DOWNSTREAM_REMOTE_ADDRESS%" "%REQ(X-REQUEST-ID)%"'
    ' "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"\n'
)
_MOST_HOSTS = 8192


def configuration(namespace: str) -> Object:
    config = {
        "static_resources": {"listeners": [_listener(), _metrics_listener()], "clusters": list(_clusters())},
        "admin": {"address": _ADMIN},
    }
    data = {"envoy.yaml": yaml.dump(config, Dumper=Dumper, sort_keys=True, width=1 << 20)}
    return make_unique(made(CONFIG_MAPS, f"{SERVER}-envoy-config", namespace=namespace, data=data))


def _typed(kind: str, **fields: object) -> Object:
    return {"@type": f"type.googleapis.com/{kind}", **fields}


def _at(address: str, number: int, **fields: str) -> Object:
    return {"socket_address": {"address": address, "port_value": number, **fields}}


def _listener() -> Object:
    """Listener for only the API server, which has a client certificate."""
    pair = {
        "certificate_chain": {"filename": f"{CERTIFICATES}/tls.crt"},
        "private_key": {"filename": f"{CERTIFICATES}/tls.key"},
    }
    trusted = {"trusted_ca": {"filename": f"{CERTIFICATES}/ca.crt"}}
    tls = _typed(
        f"{_SOCKETS}.tls.v3.DownstreamTlsContext",
        common_tls_context={"tls_certificates": [pair], "validation_context": trusted},
    )
    connect = {"upgrade_type": "CONNECT", "connect_config": {}}
    route = {"cluster": "dynamic_forward_proxy_cluster", "upgrade_configs": [connect]}
    manager = _manager(
        "ingress_http",
        {"name": "local_service", "domains": ["*"], "routes": [{"match": {"connect_matcher": {}}, "route": route}]},
        route_name="local_route",
        filters=[
            {
                "name": "envoy.filters.http.dynamic_forward_proxy",
                "typed_config": _typed(
                    f"{_FILTERS}.http.dynamic_forward_proxy.v3.FilterConfig", dns_cache_config=_NAMES
                ),
            }
        ],
        access_log=[_log()],
        http_protocol_options={"accept_http_10": True},
        upgrade_configs=[{"upgrade_type": "CONNECT"}],
    )
    inspector = _typed(f"{_FILTERS}.listener.tls_inspector.v3.TlsInspector")
    return {
        "name": "listener_0",
        "address": _at("0.0.0.0", PROXY, protocol="TCP"),
        "additional_addresses": [{"address": _at("::", PROXY)}],
        "listener_filters": [{"name": "envoy.filters.listener.tls_inspector", "typed_config": inspector}],
        "filter_chains": [
            {
                "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
                "filters": [{"name": _CONNECTION_MANAGER, "typed_config": manager}],
            }
        ],
    }


def _manager(
    prefix: str, host: Object, *, route_name: str = "", filters: list[Object] | None = None, **fields: object
) -> Object:
    router = {"name": "envoy.filters.http.router", "typed_config": _typed(f"{_FILTERS}.http.router.v3.Router")}
    routes = {"virtual_hosts": [host], **({"name": route_name} if route_name else {})}
    return _typed(
        f"{_FILTERS}.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=prefix,
        route_config=routes,
        http_filters=[*(filters or ()), router],
        **fields,
    )


def _log() -> Object:
    """Access log of slow or failed requests."""

    def above(name: str, number: int) -> Object:
        value = {"default_value": number, "runtime_key": "null"}
        return {name: {"comparison": {"op": "GE", "value": value}}}

    slow_or_failed = [above("status_code_filter", _SERVER_ERROR), above("duration_filter", _SLOW_MILLISECONDS)]
    written = _typed(
        "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
        log_format={"text_format_source": {"inline_string": _LOGGED}},
    )
    return {
        "name": "envoy.access_loggers.stdout",
        "filter": {"or_filter": {"filters": slow_or_failed}},
        "typed_config": written,
    }


def _metrics_listener() -> Object:
    matching = {"prefix": "/metrics", "headers": [{"name": ":method", "string_match": {"exact": "GET"}}]}
    route = {"match": matching, "route": {"cluster": "prometheus_stats", "prefix_rewrite": "/stats/prometheus"}}
    manager = _manager("stats_server", {"name": "admin_interface", "domains": ["*"], "routes": [route]})
    return {
        "name": "metrics_listener",
        "address": _at("0.0.0.0", METRICS),
        "filter_chains": [{"filters": [{"name": _CONNECTION_MANAGER, "typed_config": manager}]}],
    }


_NAMES = {"name": "dynamic_forward_proxy_cache_config", "dns_lookup_family": "ALL", "max_hosts": _MOST_HOSTS}


def _clusters() -> Iterator[Object]:
    yield {
        "name": "dynamic_forward_proxy_cluster",
        "connect_timeout": "20s",
        "circuitBreakers": {"thresholds": [{"maxConnections": _MOST_HOSTS}]},
        "lb_policy": "CLUSTER_PROVIDED",
        "cluster_type": {
            "name": "envoy.clusters.dynamic_forward_proxy",
            "typed_config": _typed(
                "envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig", dns_cache_config=_NAMES
            ),
        },
    }
    endpoint = {"endpoint": {"address": _ADMIN}}
    yield {
        "name": "prometheus_stats",
        "connect_timeout": "0.25s",
        "type": "static",
        "load_assignment": {"cluster_name": "prometheus_stats", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
