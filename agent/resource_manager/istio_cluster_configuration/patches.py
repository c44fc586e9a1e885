"""From DestinationRules to settings of Envoy's clusters: one function of what is known."""

from collections.abc import Callable, Iterable, Sequence

from agent.resource_manager.istio_cluster_configuration.projections import DestinationRule, Service, ServicePort
from gardener import keys, kinds
from kube.objects import Key, Object, mapping, mappings
from kube.resources import NAMESPACES

NAME = "istio-cluster-configuration"
SUFFIX = "-cluster-configuration"

_BUFFER_BYTES = 32768
_HTTP2_PROTOCOLS = frozenset({"http2", "kubernetes.io/h2c", "grpc", "grpc-web"})
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_EXPLICIT, _DOWNSTREAM = "explicit_http_config", "use_downstream_protocol_config"


def config_patches(
    rules: Iterable[DestinationRule], service_of: Callable[[Key], Service | None], ingress_namespaces: Sequence[str]
) -> dict[str, list[Object]]:
    """The patches of the DestinationRules of one namespace, for each namespace with ingress gateways."""
    found: dict[str, list[Object]] = {namespace: [] for namespace in ingress_namespaces}
    for rule in sorted(rules, key=lambda rule: rule.key):
        name = rule.service()
        service = service_of(name) if name is not None else None
        if service is None or rule.is_partial:
            continue
        exported = resolve(rule.export_to, rule.key.namespace, ingress_namespaces)
        for namespace in resolve(service.export_to, service.key.namespace, exported):
            found[namespace] += [_patch(service, port, http2_mode(rule.traffic_policy, port)) for port in service.ports]
    return found


def resolve(export_to: Sequence[str], own: str, candidates: Sequence[str]) -> list[str]:
    """The candidates that something is exported to, in their order."""
    chosen = set()
    for entry in export_to:
        if entry == "~":
            return []
        if entry == "*":
            return list(candidates)
        chosen.add(own if entry == "." else entry)
    return [candidate for candidate in candidates if candidate in chosen]


def http2_mode(traffic_policy: Object, port: ServicePort) -> str:
    """The field that switches on HTTP/2; empty: it is not to be switched on."""
    levels = [
        level
        for level in mappings(traffic_policy.get("portLevelSettings"))
        if mapping(level.get("port")).get("number") == port.number
    ]
    for settings in (*levels, traffic_policy):
        http = mapping(mapping(settings.get("connectionPool")).get("http"))
        if http.get("useClientProtocol") is True:
            return _DOWNSTREAM
        if http.get("h2UpgradePolicy") == "UPGRADE":
            return _EXPLICIT
    protocol = port.app_protocol or _protocol_of(port.name)
    return _EXPLICIT if protocol.lower() in _HTTP2_PROTOCOLS else ""


def _protocol_of(name: str) -> str:
    return "grpc-web" if name.lower().startswith("grpc-web") else name.partition("-")[0]


def _patch(service: Service, port: ServicePort, mode: str) -> Object:
    value: Object = {"per_connection_buffer_limit_bytes": _BUFFER_BYTES}
    if mode:
        windows = {"initial_stream_window_size": 65536, "initial_connection_window_size": 1048576}
        value["typed_extension_protocol_options"] = {
            _HTTP_OPTIONS: {
                "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
                "common_http_protocol_options": {"max_connection_duration": "86400s"},
                mode: {"http2_protocol_options": windows},
            }
        }
    host = f"{service.key.name}.{service.key.namespace}.svc.cluster.local"
    return {
        "applyTo": "CLUSTER",
        "match": {"context": "GATEWAY", "cluster": {"name": f"outbound|{port.number}||{host}"}},
        "patch": {"operation": "MERGE", "value": value},
    }


def envoy_filter(source: str, source_uid: str, target: str, patches: Sequence[Object]) -> Object:
    """The object that holds the patches; it goes with the namespace that they come from."""
    owner = {**NAMESPACES.reference(name=source, uid=source_uid), "controller": True, "blockOwnerDeletion": True}
    return {
        "apiVersion": kinds.ENVOY_FILTERS.api_version,
        "kind": kinds.ENVOY_FILTERS.kind,
        "metadata": {
            "name": f"{source}{SUFFIX}",
            "namespace": target,
            "labels": {keys.MANAGED_BY: NAME},
            "ownerReferences": [owner],
        },
        "spec": {"configPatches": list(patches)},
    }
