"""From DestinationRules to settings of Envoy's clusters: one function of what is known."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent.resource_manager.istio_cluster_configuration.rules.projections import (
    EXPLICIT,
    DestinationRule,
    Http2,
    Service,
    ServicePort,
)
from gardener import keys
from gardener.api import kinds
from kube.objects import Key, Object
from kube.resources import NAMESPACES

NAME = "istio-cluster-configuration"
SUFFIX = "-cluster-configuration"

MOST_PATCHES = 1000
"""For the gateways of a namespace, of all DestinationRules of another one."""

_BUFFER_BYTES = 32768
_HTTP2_PROTOCOLS = frozenset({"http2", "kubernetes.io/h2c", "grpc", "grpc-web"})
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


@dataclass(slots=True)
class Patches:
    """For each namespace with ingress gateways, and what there was no room for."""

    by_namespace: dict[str, list[Object]]
    left_out: list[DestinationRule] = field(default_factory=list)


def compute_patches(
    found: Patches, rules: Iterable[DestinationRule], service_of: Callable[[Key], Service | None]
) -> Iterator[None]:
    """The patches of the DestinationRules of one namespace, in steps between which the caller may give way to others.

    A rule whose patches are too many for a namespace with ingress gateways has none.
    """
    ingress_namespaces = list(found.by_namespace)
    for rule in sorted(rules, key=lambda rule: rule.key):
        yield
        name = rule.service()
        service = service_of(name) if name is not None else None
        if service is None or rule.is_partial:
            continue
        targets = service.export_to.among(rule.export_to.among(ingress_namespaces))
        if any(len(found.by_namespace[each]) + len(service.ports) > MOST_PATCHES for each in targets):
            found.left_out.append(rule)
            continue
        patches = [_patch(service, port, http2_mode(rule.http2, port)) for port in service.ports] if targets else []
        for namespace in targets:
            found.by_namespace[namespace] += patches


def http2_mode(http2: Http2, port: ServicePort) -> str:
    """The field that switches on HTTP/2; empty: it is not to be switched on."""
    if mode := http2.mode(port.number):
        return mode
    protocol = port.app_protocol or _protocol_of(port.name)
    return EXPLICIT if protocol.lower() in _HTTP2_PROTOCOLS else ""


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
